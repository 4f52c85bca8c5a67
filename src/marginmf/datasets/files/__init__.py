"""Files of ratings, pairs and features in any usual format, read and written in batches.

`reader` reads. A `Source` has a format (`formats`, the table of them, which also writes); `text`
and `arrow` find its columns (`columns`) and convert their values (`convert`).
"""
