"""The tables and figures of the thesis, measured again."""
