"""The commands for datasets known by name: list, get, info and path."""
