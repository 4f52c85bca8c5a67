"""Hamming loss, accuracy and subset accuracy on twelve label sets."""

from marginmf.experiments.chapter5.contenders import PROTOCOL, QUICK, TABLE
from marginmf.experiments.label_exhibits import measures_exhibit
from marginmf.experiments.retuned import Retuned

EXHIBIT = measures_exhibit(
    "mlc-hmf-sets",
    5,
    "Hamming loss, accuracy and subset accuracy of MLC-HMF",
    TABLE,
    ("hamming", "accuracy", "subset_accuracy"),
    quick=QUICK,
    protocol=PROTOCOL,
    retuned=Retuned(
        TABLE,
        "hamming",
        ["cal500", "plant", "langlog", "human", "rcv1subset2"],
        "The sets where the Hamming loss above is short of the thesis by more than noise.",
    ),
)
