"""Do these methods differ?  Tests for several methods over several data sets.

As in Demšar (2006), `friedman_test` asks whether the methods differ at all;
`nemenyi_test` compares all of them with one another, `bonferroni_dunn_test` all with one control;
`wilcoxon_holm` compares pairs by the sizes of their differences.  For the splits of a single data
set there is `paired_comparison`; for values of the same users, `paired_randomisation_test` and
`bootstrap_interval`.

Scores are given as a mapping of method to scores, one for each data set, in the same order; as a
mapping of method to a mapping of data set to score; as a frame with a column for each method; or as
an array with a row for each data set and a column for each method.

>>> scores = {"A": [0.71, 0.80, 0.64], "B": [0.69, 0.80, 0.60], "C": [0.70, 0.75, 0.55]}
>>> average_ranks(scores, higher_is_better=True)
{'A': 1.1666666666666667, 'B': 2.1666666666666665, 'C': 2.6666666666666665}
"""

from marginmf.stats.paired import (
    PairedComparison,
    SignedRankTest,
    bootstrap_interval,
    holm,
    paired_comparison,
    paired_randomisation_test,
    signed_rank_test,
    wilcoxon_holm,
)
from marginmf.stats.ranks import (
    FriedmanTest,
    PostHocTest,
    average_ranks,
    bonferroni_dunn_critical_difference,
    bonferroni_dunn_test,
    cliques,
    friedman_test,
    nemenyi_critical_difference,
    nemenyi_test,
)

__all__ = [
    "FriedmanTest",
    "PairedComparison",
    "PostHocTest",
    "SignedRankTest",
    "average_ranks",
    "bonferroni_dunn_critical_difference",
    "bonferroni_dunn_test",
    "bootstrap_interval",
    "cliques",
    "friedman_test",
    "holm",
    "nemenyi_critical_difference",
    "nemenyi_test",
    "paired_comparison",
    "paired_randomisation_test",
    "signed_rank_test",
    "wilcoxon_holm",
]
