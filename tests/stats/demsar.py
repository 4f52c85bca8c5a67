"""The worked example of Demšar (2006): four variants of C4.5 on fourteen data sets."""

import numpy as np

NAMES = ("C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf")

#: The printed ranks.  (From the printed scores one pair of ranks would be shared: on voting both
#: are .975, and the article ranks them 2 and 3.)
RANKS = np.array(
    [
        [4, 3, 2, 1],
        [1, 2, 3, 4],
        [4, 1, 2, 3],
        [4, 1, 3, 2],
        [4, 2, 3, 1],
        [1, 2.5, 4, 2.5],
        [3, 2, 4, 1],
        [2.5, 2.5, 4, 1],
        [4, 3, 2, 1],
        [2.5, 2.5, 2.5, 2.5],
        [4, 2.5, 1, 2.5],
        [3, 2, 4, 1],
        [4, 1, 2, 3],
        [3, 1, 4, 2],
    ]
)
#: The scores of the first two, which the article compares by Wilcoxon's test.
PLAIN = [0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661]
PLAIN += [0.583, 0.775, 1.0, 0.940, 0.619, 0.972, 0.957]
TUNED = [0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668]
TUNED += [0.583, 0.838, 1.0, 0.962, 0.666, 0.981, 0.978]

SCORES = dict(zip(NAMES, RANKS.T, strict=True))
