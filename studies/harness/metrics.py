"""Metrics as tables show them: headings, and which direction is better."""

from typing import NamedTuple


class Metric(NamedTuple):
    """How a metric is called in tables, and whether higher is better."""

    heading: str
    higher_is_better: bool = False


METRICS = {
    "mae": Metric("MAE"),
    "mae_real": Metric("MAE"),
    "nmae": Metric("NMAE"),
    "zero_one": Metric("zero-one error"),
    "rmse": Metric("RMSE"),
    "rmse_real": Metric("RMSE"),
    "log_loss": Metric("log loss"),
    "ece": Metric("ECE"),
    "hamming": Metric("Hamming loss"),
    "accuracy": Metric("Accuracy", True),
    "subset_accuracy": Metric("Subset accuracy", True),
    "example_f1": Metric("Example-based F1", True),
    "macro_f1": Metric("Macro F1", True),
    "micro_f1": Metric("Micro F1", True),
    "ndcg": Metric("nDCG@10", True),
    "precision": Metric("precision@10", True),
    "recall": Metric("recall@10", True),
    "map": Metric("MAP@10", True),
    "mrr": Metric("MRR", True),
    "coverage": Metric("coverage", True),
}


def heading(name: str) -> str:
    """Return what a metric is called in tables.

    >>> heading("ndcg")
    'nDCG@10'
    """
    return METRICS[name].heading
