"""Verdicts on rating systems: what is published against what the splits of ours found."""

import math
from typing import Any, NamedTuple

from studies.harness import Values
from studies.harness.markdown import Outcome
from studies.thesis.published import PublishedFigure
from studies.thesis.samples import Sample, format_figure, judge


class Found(NamedTuple):
    """What the splits of one system found under one protocol."""

    nmae: Sample
    #: The standard error of a split's NMAE that its finite test set leaves, and of one draw's.
    noise: float
    noise_of_draw: float


class Judgement(NamedTuple):
    """The verdict on a published figure."""

    name: str
    ours: Found
    there: PublishedFigure

    @property
    def outcome(self) -> Outcome:
        return judge_row(self.ours, self.there)[0]

    @property
    def better(self) -> bool:
        """Whether ours is below it by more than two standard errors."""
        return judge_row(self.ours, self.there)[1]

    @property
    def as_printed(self) -> Outcome:
        """The verdict by the deviations over splits alone."""
        return judge(self.ours.nmae, self.there, higher_is_better=False)

    @property
    def words(self) -> str:
        figures = format_figure(self.ours.nmae.mean), format_figure(self.there.mean)
        word = describe_outcome(self.outcome, self.better)
        return f"{self.name} {figures[0]} (published {figures[1]}, {word})"


def judge_row(ours: Found, there: PublishedFigure) -> tuple[Outcome, bool]:
    """Return whether a published figure was reached, and whether ours is far better.

    As few ratings are assumed behind the published figure as one draw tests on.

    >>> found = Found(Sample((0.39, 0.39, 0.39)), noise=0.006, noise_of_draw=0.006)
    >>> [judge_row(found, PublishedFigure(mean, 0.003)) for mean in (0.41, 0.395, 0.37)]
    [('reproduced', True), ('reproduced', False), ('not reproduced', False)]
    """
    noisy = there._replace(std=max(there.std, ours.noise_of_draw))
    outcome = judge(ours.nmae, noisy, higher_is_better=False, least_spread=ours.noise)
    # If more were better, ours would be behind by more than two standard errors.
    reverse = judge(ours.nmae, noisy, higher_is_better=True, least_spread=ours.noise)
    return outcome, reverse == "not reproduced"


def describe_outcome(outcome: Outcome, better: bool) -> str:
    return "better" if better else outcome


def pick_if_any(*keys: str) -> Any:
    """Return a function that picks a number by its path, NaN where there is none."""

    def picked(values: Values) -> float:
        value: Any = values
        for key in keys:
            value = value.get(key, math.nan)
        return float(value)

    return picked


def standard_error(values: Values) -> float:
    """Return the standard error of one draw's NMAE that its finite number of ratings leaves.

    >>> round(standard_error({"test": {"mae": 0.6, "rmse": 1.0, "nmae": 0.375}, "n_test": 100}), 6)
    0.05
    """
    errors = values["test"]
    scatter = math.sqrt(errors["rmse"] ** 2 - errors["mae"] ** 2)
    return float(scatter * errors["nmae"] / errors["mae"] / math.sqrt(values["n_test"]))
