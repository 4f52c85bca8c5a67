"""Everything that a user asks of a loaded model, and which answers are faults of the library.

An error that marginmf raises itself is an answer.  Any other exception is a fault: it comes from a
library below that was given what it cannot take.
"""

import linecache
import traceback
import warnings
from copy import copy
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

import marginmf
from marginmf.labels.base import LabelsEstimator
from marginmf.ratings.positive import PositiveOnly

SOURCE = Path(marginmf.__file__).parent
#: No kept model is of more features.
MOST_FEATURES = 100


def calls(model):
    """Return the calls that a user may make, by name."""
    if isinstance(model, LabelsEstimator):
        return _label_calls(model)
    return _lists_calls(model) if isinstance(model, PositiveOnly) else _ratings_calls(model)


def faults(model):
    """Ask everything, and return the traceback of every exception that is not an answer."""
    found = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, call in calls(model).items():
            try:
                call()
            except Exception as error:
                if not is_an_answer(error):
                    found.append(f"{name}: {''.join(traceback.format_exception(error))}")
    return found


def is_an_answer(error):
    """Whether an error was raised by a statement of marginmf, as a sentence for the user."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    written = linecache.getline(last.filename, last.lineno).strip()
    ours = Path(last.filename).is_relative_to(SOURCE) and written.startswith("raise ")
    return ours and isinstance(error, ValueError | AttributeError | FloatingPointError)


def _pairs(model):
    users, items = model.users_.ids[:3].tolist(), model.items_.ids[:4].tolist()
    return [(user, item) for user in users for item in items]


def _ratings_calls(model):
    known = _pairs(model)
    (user, item), asked = known[0], [*known, (known[0][0], "nothing"), ("nobody", known[0][1])]
    low, high = model.levels_[0], model.levels_[-1]
    new = [("new", item) for _, item in known[:4]], [low, high] * 2
    new_item = [(user, "new") for user, _ in known[::4]], [high] * len(known[::4])
    made = {
        **{f"predict {how}": lambda how=how: model.predict(asked, output=how) for how in OUTPUTS},
        "predict nan": lambda: model.predict(asked, unknown="nan"),
        "predict_proba": lambda: model.predict_proba(asked),
        "decision_function": lambda: model.decision_function(asked),
        "score": lambda: model.score(known, [high] * len(known)),
        **{f"recommend {by}": lambda by=by: model.recommend(n=3, by=by) for by in RANKED_BY},
        "similar_items": lambda: model.similar_items([item], n=3),
        "similar_users": lambda: model.similar_users([user], n=3),
        "explain": lambda: model.explain(user, item),
        "fold_in": lambda: model.fold_in(*new).predict(new[0]),
        "fold_in_items": lambda: model.fold_in_items(*new_item).predict(new_item[0]),
        "update_users": lambda: copy(model).update_users(*new).predict(new[0]),
        "update_items": lambda: copy(model).update_items(*new_item).predict(new_item[0]),
        "names": lambda: (model.column_names_, model.level_names_),
        "repr": lambda: repr(model),
    }
    if hasattr(model, "credible_interval"):
        made["credible_interval"] = lambda: model.credible_interval(asked)
    return made


OUTPUTS = ("median", "mode", "mean", "rule")
RANKED_BY = ("relevance", "expected", "chance")


def _lists_calls(model):
    known = _pairs(model)
    (user, item), new = known[0], [("new", item) for _, item in known[:4]]
    made = {
        "recommend": lambda: model.recommend(n=3),
        "decision_function": lambda: model.decision_function([*known, ("nobody", "nothing")]),
        "fold_in": lambda: model.fold_in(new, [5.0] * 4).recommend("new"),
        "taken": lambda: model.taken_,
        "repr": lambda: repr(model),
    }
    if hasattr(model, "similar_items"):
        made["similar_items"] = lambda: model.similar_items([item], n=3)
    if hasattr(model, "similar_users"):
        made["similar_users"] = lambda: model.similar_users([user], n=3)
    return made


def _label_calls(model):
    n_features = min(model.n_features_in_, MOST_FEATURES)
    rows = np.round(np.random.default_rng(1).uniform(size=(4, n_features)), 2)
    rows[3] = 0.0
    made = {
        "predict": lambda: model.predict(rows),
        "predict sparse": lambda: model.predict(csr_array(rows)),
        "decision_function": lambda: model.decision_function(rows),
        "repr": lambda: repr(model),
    }
    if hasattr(model, "predict_proba"):
        made["predict_proba"] = lambda: model.predict_proba(rows)
    if hasattr(model, "transform"):
        made["transform"] = lambda: model.transform(rows)
    return made
