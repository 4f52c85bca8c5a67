"""The validation error of every stage of HMF against the weight of its penalty."""

from functools import partial

from marginmf.experiments.blocks import Block, Figure, Table, Text, Verdict
from marginmf.experiments.cell import Cell, splits
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.figures import curves_figure
from marginmf.experiments.grids import sixteenths
from marginmf.experiments.samples import Sample, at, measured, once_run
from marginmf.experiments.store import Store

#: How many levels, hence stages, each data set has.
STAGES = {"ml-100k": 4, "ml-1m": 4, "eachmovie-sample": 5}


def data_at(scale: Scale) -> tuple[str, ...]:
    """Return the data that are used."""
    return ("ml-100k",) if scale == "quick" else ("ml-1m", "eachmovie-sample")


def regs_at(scale: Scale) -> list[float]:
    """Return the candidates: every second one of the thesis's, or a few."""
    return sixteenths(range(4, 41, 9 if scale == "quick" else 2))


def cells_for(data: str, stage: int, reg: float, scale: Scale) -> list[Cell]:
    """Return the hold-outs of one point."""
    quick = scale == "quick"
    return splits(
        "stage_error",
        1 if quick else 3,
        data=data,
        stage=stage,
        n_factors=20 if quick else 100,
        reg=reg,
    )


def cells(scale: Scale) -> list[Cell]:
    """Return every stage at every candidate."""
    return [
        cell
        for data in data_at(scale)
        for stage in range(1, STAGES[data] + 1)
        for reg in regs_at(scale)
        for cell in cells_for(data, stage, reg, scale)
    ]


@once_run
def show(store: Store, scale: Scale) -> list[Block]:
    """Draw a curve for every stage, and list where each is lowest."""
    regs = regs_at(scale)
    blocks: list[Block] = []
    inside = True
    for data in data_at(scale):
        errors: dict[str, list[Sample]] = {
            f"stage {stage}": [
                measured(store, cells_for(data, stage, reg, scale), at("zero_one")) for reg in regs
            ]
            for stage in range(1, STAGES[data] + 1)
        }
        rows = []
        for name, along in errors.items():
            means = [one.mean for one in along]
            best = min(range(len(means)), key=means.__getitem__)
            inside &= 0 < best < len(means) - 1
            rows.append([name, f"{regs[best]:.2f}", f"{means[best]:.4f}", f"{means[0]:.4f}"])
        blocks += [
            Figure(
                partial(
                    curves_figure,
                    regs,
                    errors,
                    "weight of the penalty",
                    "zero-one error",
                    log_x=True,
                ),
                f"Validation error of every stage on {data}",
                "Zero-one error against the weight of the penalty, a curve for each stage.",
            ),
            Table(
                ["stage", "best weight", "error there", f"at the weakest, {regs[0]:.2f}"],
                rows,
                f"Where the validation error is smallest, {data}",
            ),
        ]
    verdict = Verdict(
        "reproduced" if inside else "not reproduced",
        "every stage has a smallest error inside the range of candidates, and the stages' places "
        "differ, which is why each has its own weight."
        if inside
        else "a stage has its smallest error at an end of the range of candidates.",
    )
    text = Text(
        "One rating of every user is held out; the stage is learned from the rest with "
        f"{20 if scale == 'quick' else 100} factors. The thesis draws stage 3 alone; it tries all "
        "candidates 10^(i/16) for i from 4 to 40, of which this tries every "
        f"{'ninth' if scale == 'quick' else 'second'}."
    )
    return [verdict, text, *blocks]


EXHIBIT = Exhibit(
    "validation", 3, "figure", "Validation error of every stage over its penalty", cells, show
)
