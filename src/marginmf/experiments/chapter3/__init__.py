"""The tables and figures of chapter 3."""
