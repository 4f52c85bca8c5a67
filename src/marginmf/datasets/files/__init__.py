"""Files of any usual kind, read and written batch by batch.

Reading goes one way: a `Source` (bytes) has a `Kind`; the reader of that kind (`text`, `jsonlines`,
`columnar`) finds the columns (`headers`) and yields batches of ids, ratings and times (`blocks`),
by the meaning that raw columns have there (`cells`, `values`, `arrow_values`); `Rows` is all of it.
Writing goes the other way, in `text_writers` and `columnar_writers`.
"""
