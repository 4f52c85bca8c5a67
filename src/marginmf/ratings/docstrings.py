"""What the docstrings of all factorisers have in common is written once, here."""

import inspect

#: The paragraphs that the docstrings of all factorisers share, by the mark that they replace.
SHARED_DOCS = {
    "{factor_parameters}": """\
n_factors : int
    The rank of the factorisation.
reg : float or "auto"
    The weight of the penalty on the factors.  Auto: the one with the smallest error on held-out
    ratings, found along a path of candidates; see `marginmf.tuning`.""",
    "{factor_attributes}": """\
user_factors_, item_factors_ : array
    The factors, a row for each of ``users_.ids`` and ``items_.ids``.""",
    "{selection_parameters}": """\
holdouts : int
    On how many random tenths of the ratings ``reg="auto"`` is chosen.  With more of them the
    choice varies less and takes longer.""",
    "{selection_attributes}": """\
reg_ : float
    The weight of the penalty that was used.
reg_path_ : RegularisationPath
    The error on held-out ratings along the candidates (with ``reg="auto"``).""",
    "{margin_parameters}": """\
loss : str or TwoLevelLoss
    ``"smooth_hinge"``, ``"hinge"``, ``"modified_square"``, ``"logistic"``, or a loss of your own.
solver : str or solver
    ``"lbfgs"``, ``"cg"`` or ``"gd"``, or a solver object.""",
    "{shared_parameters}": """\
max_iter, tol
    When to stop: after so many iterations, or when one of them (on the average of the last three)
    lowers the objective by less than this share of it.
early_stopping : bool
    Whether to hold ratings out, stop when their error no longer falls, and keep the factors with
    the smallest one.  A few iterations with all ratings come last.
validation_fraction, n_iter_no_change
    With ``early_stopping``: which share of the ratings is held out, and after how many iterations
    in a row without a new smallest error to stop.
random_state : int, Generator or None
    Seeds the start.
n_jobs : int or None
    Threads, as in scikit-learn: None is one, -1 is all.  The result does not depend on it.
dtype : {"float32", "float64"}
    Of the factors; sums are made in float64.
verbose : int
    1 shows a progress bar on standard error.
callbacks : sequence of callable
    Called with a `marginmf.solvers.Progress` after every iteration; returning True stops.""",
    "{shared_attributes}": """\
users_, items_ : IdIndex
    The ids seen in training, and their codes.
levels_ : array
    The scale seen in training, ascending.
ratings_ : Ratings
    What the users were learned from.
history_ : list of Record
    Objective, gradient norm, evaluations and seconds after every iteration.
n_iter_, n_evaluations_ : int
    How many iterations were made, and how many gradients they took.
stop_reason_ : str
    Why the solver stopped.
validation_errors_ : list of float
    The error on held-out ratings at the start and after every iteration (with
    ``early_stopping``).""",
}


def filled(docstring: str | None) -> str:
    """Return a docstring with the shared paragraphs in the place of their marks."""
    text = inspect.cleandoc(docstring or "")
    for mark, paragraphs in SHARED_DOCS.items():
        text = text.replace(mark, paragraphs)
    return text
