"""The tables and figures of chapter 5."""
