"""``marginmf reproduce ...``: the tables and figures of the thesis."""
