"""The published tables, and what follows from them."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginmf.metrics import LABEL_METRICS
from marginmf.stats import average_ranks, friedman_test, nemenyi_critical_difference
from marginmf.stats.ranks import nemenyi_quantile
from studies.thesis.published import (
    DATA,
    PublishedTable,
    correct,
    published,
    published_friedman,
    read,
    worked_example,
)

TABLES = ["nmae", "mae-rmse", "mlc-hmf", "grople"]
FILES = sorted(file.name.removesuffix(".json") for file in DATA.glob("*.json"))
# From the tables themselves, by the formula of Demšar (2006).
RECOMPUTED = {
    "mlc-hmf": {
        "hamming": 8.393,
        "accuracy": 7.384,
        "subset_accuracy": 6.938,
        "example_f1": 9.064,
        "macro_f1": 6.039,
        "micro_f1": 7.422,
    },
    "grople": {"accuracy": 11.692, "example_f1": 12.353, "macro_f1": 12.686, "micro_f1": 7.470},
}


def places(table: PublishedTable) -> list[tuple[str, str, str]]:
    return list(product(table.measures, table.datasets, table.methods))


@pytest.mark.parametrize(
    ("name", "shape", "absent"),
    [
        ("nmae", (2, 2, 10), 0),
        ("mae-rmse", (2, 1, 3), 0),
        ("mlc-hmf", (6, 12, 7), 0),
        ("grople", (4, 12, 8), 12),
    ],
)
def test_tables_are_complete(name: str, shape: tuple[int, int, int], absent: int) -> None:
    table = published(name)
    assert (len(table.measures), len(table.datasets), len(table.methods)) == shape
    figures = [table.at(*place) for place in places(table)]
    assert figures.count(None) == absent
    for figure in figures:
        if figure is not None:
            assert 0 <= figure.mean <= 1.1
            assert 0 <= figure.std <= 0.1


def test_a_few_figures_are_as_printed() -> None:
    figure = published("mlc-hmf").at("subset_accuracy", "ohsumed", "LLSF")
    assert figure is not None
    assert (figure.mean, figure.std, figure.rank, figure.bold) == (0.222, 0.011, 1, True)
    figure = published("grople").at("macro_f1", "delicious", "MLSF")
    assert figure is not None
    assert (figure.mean, figure.std, figure.rank, figure.bold) == (0.102, 0.001, None, True)
    figure = published("mae-rmse").at("rmse", "MovieLens 100K", "ALS")
    assert figure is not None
    assert (figure.mean, figure.std) == (1.0838, 0.0055)
    assert published("grople").at("accuracy", "bookmarks", "CPLST") is None


def test_printed_ranks_follow_from_the_means_except_at_the_slips() -> None:
    table = published("mlc-hmf")
    wrong = {}
    for measure, dataset in product(table.measures, table.datasets):
        one = {method: {dataset: means[dataset]} for method, means in table.scores(measure).items()}
        ranks = average_ranks(one, table.higher_is_better[measure])
        for place, method in enumerate(table.methods):
            figure = table.at(measure, dataset, method)
            assert figure is not None
            if figure.rank != ranks[method]:
                wrong["rank", measure, dataset, place] = (figure.rank, ranks[method])
    listed = {
        slip.where: (slip.printed, slip.right) for slip in table.slips if "rank" in slip.where
    }
    assert wrong == listed
    assert len(listed) == 5


@pytest.mark.parametrize("name", ["nmae", "mlc-hmf", "grople"])
def test_bold_is_the_best_except_at_the_slips(name: str) -> None:
    table = published(name)
    wrong = {}
    for measure, dataset in product(table.measures, table.datasets):
        figures = {method: table.at(measure, dataset, method) for method in table.methods}
        means = {method: figure.mean for method, figure in figures.items() if figure is not None}
        best = (max if table.higher_is_better[measure] else min)(means.values())
        right = [method for method, mean in means.items() if mean == best]
        bold = [method for method, figure in figures.items() if figure and figure.bold]
        if bold != right:
            wrong["bold", measure, dataset] = (bold, right)
    listed = {
        slip.where: (slip.printed, slip.right) for slip in table.slips if "bold" in slip.where
    }
    assert wrong == listed
    assert len(listed) == (2 if name == "grople" else 0)


@pytest.mark.parametrize("name", RECOMPUTED)
def test_the_friedman_statistics_follow_from_the_tables_or_are_slips(name: str) -> None:
    table, printed = published(name), published_friedman(name)
    slips = {slip.where[1]: slip.right for slip in printed.slips}
    for measure, expected in RECOMPUTED[name].items():
        found = friedman_test(
            table.scores(measure, leave_out=printed.left_out),
            higher_is_better=table.higher_is_better[measure],
            alpha=printed.alpha,
        )
        assert (found.n_methods, found.n_datasets) == (printed.n_methods, printed.n_datasets)
        assert found.f == pytest.approx(expected, abs=0.02)
        assert found.f_critical == pytest.approx(printed.critical_value, abs=5e-4)
        assert found.differ
        if measure in slips:
            assert slips[measure] == pytest.approx(found.f, abs=5e-4)
        else:
            assert printed.f[measure] == pytest.approx(found.f, abs=0.02)
    assert set(slips) == (set(RECOMPUTED[name]) if name == "mlc-hmf" else set())


@pytest.mark.parametrize("name", RECOMPUTED)
def test_critical_differences_are_those_of_nemenyi(name: str) -> None:
    printed = published_friedman(name)
    k, n = printed.n_methods, printed.n_datasets
    assert nemenyi_quantile(k, printed.alpha) == pytest.approx(printed.q, abs=1e-3)
    cd = nemenyi_critical_difference(k, n, printed.alpha)
    assert cd == pytest.approx(printed.critical_difference, abs=1e-3)


@pytest.mark.parametrize("file", FILES)
def test_every_slip_says_what_the_file_has_there(file: str) -> None:
    content, slips = read(file, FILES)
    for slip in slips:
        value: Any = content
        for step in slip.where:
            value = value[step]
        assert value == slip.printed
        assert slip.right != slip.printed
        assert slip.why.endswith(".")


def test_what_cannot_be_told_has_no_right_value() -> None:
    (slip,) = [slip for slip in published("mlc-hmf").slips if slip.right is None]
    table = published("mlc-hmf")
    assert slip.where[1:3] == ("micro_f1", "langlog")
    assert table.methods[int(slip.where[3])] == "ML-kNN"


def test_measures_of_labels_are_those_of_the_library() -> None:
    for name in ("mlc-hmf", "grople"):
        assert set(published(name).measures) <= set(LABEL_METRICS)


def sizes_of(name: str, corrected: bool = False) -> dict[str, dict[str, Any]]:
    content, slips = read(f"{name}-datasets", FILES)
    return (correct(content, slips) if corrected else content)["datasets"]


def test_data_sets_of_the_tables_are_described() -> None:
    for name in ("mlc-hmf", "grople"):
        assert list(sizes_of(name)) == list(published(name).datasets)
    assert sizes_of("ratings")["EachMovie"] == {
        "users": 72916, "items": 1628, "ratings": 2811983,
        "sparsity": 97.6, "levels": 6, "fewest_ratings": 20,
    }  # fmt: skip


def test_sparsities_follow_from_the_sizes_once_corrected() -> None:
    for sizes in sizes_of("ratings", corrected=True).values():
        share = 1 - sizes["ratings"] / (sizes["users"] * sizes["items"])
        assert 100 * share == pytest.approx(sizes["sparsity"], abs=0.051)


def test_sizes_of_label_sets_are_those_of_the_published_ones_once_corrected() -> None:
    printed, right = (sizes_of("mlc-hmf", corrected=one) for one in (False, True))
    changed = {name for name in printed if printed[name] != right[name]}
    assert changed == {"plant", "human", "langlog"}
    assert (right["plant"]["instances"], right["langlog"]["instances"]) == (978, 1460)
    assert (right["human"]["instances"], right["human"]["labels"]) == (3106, 14)


@pytest.mark.parametrize(
    ("name", "file"), [("plant", "plant978"), ("human", "human3106"), ("langlog", "langlog")]
)
def test_corrected_sizes_are_those_of_the_data(name: str, file: str, data_root: Path) -> None:
    right = sizes_of("mlc-hmf", corrected=True)[name]
    with np.load(data_root / "labels" / f"{file}.npz") as data:
        n_rows, n_labels = data["Y_shape"]
    assert (right["instances"], right["labels"]) == (n_rows, n_labels)


def test_transformed_label_sets_follow_from_the_labels_once_corrected() -> None:
    content, slips = read("transformations", FILES)
    right = correct(content, slips)
    for name, printed in right["label_ranking"]["pairs"].items():
        first, second = (int(label) - 1 for label in name)
        rows = enumerate(right["Y"], start=1)
        assert printed == {str(k): row[first] for k, row in rows if row[first] != row[second]}
    relevance, sets = right["binary_relevance"], right["random_labelsets"]
    assert relevance["combined"] == relevance["predicted"]
    assert sets["sets"] == -(-sets["labels"] // sets["size"])
    unknown = [slip.where[-1] for slip in slips if slip.right is None]
    assert unknown == ["13"]
    for name, vote in content["label_ranking"]["votes"].items():
        assert (str(vote) in name) == (name not in unknown)


def test_scores_of_a_stage_add_up_to_its_sets() -> None:
    example = worked_example("hierarchy", corrected=True)
    for stage in example["stages"]:
        negative = [10 * (i + 1) + j + 1 for i, j in np.argwhere(stage["predicted"] < 0)]
        assert stage["negative"].tolist() == negative


@pytest.mark.parametrize(
    "look_up",
    [
        lambda: published("ch7"),
        lambda: published_friedman("nmae"),
        lambda: worked_example("nmae"),
    ],
)
def test_an_unknown_name_is_a_sentence(look_up) -> None:
    with pytest.raises(ValueError, match=r"is not known\. Choose one of"):
        look_up()


def test_an_unknown_place_is_a_sentence() -> None:
    with pytest.raises(KeyError, match="has no method 'HMMF', but: URP, Attitude"):
        published("nmae").at("weak", "MovieLens", "HMMF")
    with pytest.raises(KeyError, match="has no measure 'NMAE', but: weak, strong"):
        published("nmae").at("NMAE", "MovieLens", "HMF")
    with pytest.raises(KeyError, match="'likes' has no 'W', but: Y, U, V"):
        worked_example("likes")["W"]
