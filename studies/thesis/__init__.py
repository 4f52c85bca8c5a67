"""The tables and figures of Kumar's thesis, measured again."""
