"""The commands for label sets, ``marginmf labels ...``: one module a command."""
