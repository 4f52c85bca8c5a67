"""``marginmf tune --try``: combinations of parameters, by successive halving."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from marginmf.cli.models import PARAMETERS
from marginmf.cli.options import ModelOptions, TalkOptions

if TYPE_CHECKING:
    from marginmf.ratings import HalvingSearch


def parse_tries(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Read ``name=value,value``; values are JSON, or else text.

    >>> parse_tries(["reg=5,10", "loss=logistic,hinge", "factors=20"])
    {'reg': [5, 10], 'loss': ['logistic', 'hinge'], 'n_factors': [20]}
    """
    grid: dict[str, list[Any]] = {}
    for text in texts:
        name, _, written = (part.strip() for part in text.partition("="))
        if not name or not written:
            raise ValueError(f"--try {text}: write it as name=value,value, such as reg=5,10,20.")
        name = PARAMETERS.get(name.replace("-", "_"), name)
        if name in grid:
            raise ValueError(f"--try {name} is given twice: put all its values into one.")
        try:
            values = json.loads(f"[{written}]")
        except ValueError:
            values = [value.strip() for value in written.split(",")]
        grid[name] = values
    return grid


def search_of(
    estimator: Any, name: str, tries: Sequence[str], holdouts: int, talk: TalkOptions
) -> "HalvingSearch":
    """Return the search that was asked for, ready to be fitted."""
    from marginmf.ratings import HalvingSearch

    grid, has = parse_tries(tries), estimator.get_params(deep=False)
    for parameter in grid:
        if parameter not in has:
            known = ", ".join(sorted(set(has) - {"callbacks", "verbose"}))
            raise ValueError(f"--try: {name} has no parameter {parameter!r}; there are {known}.")
    return HalvingSearch(
        estimator,
        grid,
        holdouts=holdouts,
        refit=False,
        random_state=has.get("random_state"),
        verbose=int(talk.progress),
    )


def with_params(model: ModelOptions, params: Mapping[str, Any]) -> ModelOptions:
    """Return the options that set these parameters on top of others."""
    options = {option: params[name] for option, name in PARAMETERS.items() if name in params}
    rest = {name: params[name] for name in params if name not in PARAMETERS.values()}
    settings = [f"{name}={_written(value)}" for name, value in rest.items()]
    if "reg" in options:
        regs = options["reg"] if isinstance(options["reg"], list) else [options["reg"]]
        options["reg"] = ",".join(f"{reg:.4g}" for reg in regs)
    return replace(model, **options, settings=[*(model.settings or ()), *settings])


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def show_search(talk: TalkOptions, search: "HalvingSearch") -> None:
    """Print a row for each candidate, the best first."""
    from marginmf.cli.printing import new_table

    names = list(search.best_params_)
    table = new_table(*names, "iterations", "MAE", numbers=len(names) + 2)
    for outcome in search.results_:
        values = [_written(outcome.params[name]) for name in names]
        table.add_row(*values, str(outcome.n_iter), f"{outcome.error:.4f}")
    talk.out.print(table)
    talk.out.print(
        f"{len(search.results_)} candidates took {search.n_evaluations_} gradients.",
        markup=False,
        soft_wrap=True,
    )


def search_as_json(search: "HalvingSearch") -> dict[str, Any]:
    """Return what the search found, as plain data."""
    return {
        "metric": "mean absolute error",
        "candidates": [outcome._asdict() for outcome in search.results_],
        "rungs": [rung._asdict() for rung in search.rungs_],
        "chosen": search.best_params_,
    }
