"""Read ARFF files: the header (`header`), what its attributes become (`columns`), and rows.

Rows are dense (`dense_rows`) or sparse (`sparse_rows`); both are read as numbers, all at once,
where they hold nothing else, and value by value (`values`) where they do. `reader` is all of it.
"""
