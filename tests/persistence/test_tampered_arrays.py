"""Every array of every class: in another shape it is refused, and with other numbers it is safe.

Compiled kernels do not check the bounds of arrays, so a shape that is let in may be read beyond its
end.  The kept models together hold every class that a file may name.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from questions import faults
from tampered_arrays import arrays, other_shapes, other_types, other_values, read, write

import marginmf
from marginmf._utils.saved import SAVED
from marginmf.persistence import ModelFileError
from tampering import ModelParts, every_node, find

FOLDER = Path(__file__).resolve().parents[1] / "fixtures"
KEPT = sorted(FOLDER.glob("*.marginmf"))
#: Arrays that no prediction reads, and that tell how something was learned.
TOLD = r"(n_iter|objectives|losses|bounds|labelsets)_|\.kept|\.errors"
#: Names, which are compared with each other; coefficients of one label may be a vector.
OTHERWISE = r"classes_?|estimators_\.\d+\.coef_"
#: Classes that no kept model has: parameters alone, and what is learned when it is asked for.
ELSEWHERE = {"ConjugateGradient", "GradientDescent", "LBFGS", "Record", "ids", "Exposure"}
#: How many of the changes of numbers are tried of each array.  All would take minutes.
TRIED = 1


def changed(whole, name, array, path):
    """Write a model with another array, and return it, or None if it is refused."""
    note, tensor = find(whole.document, name), whole.tensors[name]
    noted = dict(note)
    write(whole, name, array)
    whole.write(path)
    note.clear()
    note.update(noted)
    whole.tensors[name] = tensor
    try:
        return marginmf.load(path)
    except ModelFileError:
        return None


def first_arrays(whole):
    """Return the names of arrays; of those of many members, nodes and the like, the first's."""
    return [name for name in arrays(whole) if not re.search(r"\.[1-9]\d*(\.|$)", name)]


def test_the_kept_models_hold_every_class():
    held = set()
    for kept in KEPT:
        for container, key in every_node(ModelParts(kept).document, []):
            if key == "object":
                held.add(container[key][0])
    named = {name for name, kind in SAVED.items() if kind.__module__.startswith("marginmf.")}
    assert named - held <= ELSEWHERE


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_an_array_in_another_shape_or_of_another_type_is_refused(kept, path):
    whole = ModelParts(kept)
    for name in first_arrays(whole):
        if re.search(f"({TOLD}|{OTHERWISE})$", name):
            continue
        array = read(whole, name)
        for what, other in (other_shapes(array) | other_types(array)).items():
            assert changed(whole, name, other, path) is None, (name, what)


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_an_array_with_other_numbers_is_refused_or_answers(kept, path):
    whole, rng = ModelParts(kept), np.random.default_rng(0)
    for name in first_arrays(whole):
        made = list(other_values(read(whole, name)).items())
        for k in rng.permutation(len(made))[:TRIED]:
            what, other = made[k]
            model = changed(whole, name, other, path)
            assert model is None or faults(model) == [], (name, what)


def test_the_bounds_of_a_calibrator_are_those_of_its_margins(path):
    # Both arrays are narrower in the same way, so that they fit each other.
    for kept in ("als-calibrated-v1", "ensemble-v1", "bmmmf-calibrated-v1"):
        whole = ModelParts(FOLDER / f"{kept}.marginmf")
        for name in ("weights", "bounds"):
            array = read(whole, f"_calibrator.{name}")
            write(whole, f"_calibrator.{name}", array[:, :-1])
        whole.write(path)
        with pytest.raises(ModelFileError, match="_calibrator is for other margins than the model"):
            marginmf.load(path)


def test_numbers_whose_squares_are_infinite_are_refused(path):
    whole = ModelParts(FOLDER / "imputedsvd-v1.marginmf")
    for number in (1e200, -1e200, np.nan, np.inf):
        array = read(whole, "item_factors_").astype(np.float64)
        array[0, 0] = number
        write(whole, "item_factors_", array)
        whole.write(path)
        with pytest.raises(ModelFileError, match="item_factors_ has a number that is not finite"):
            marginmf.load(path)


SIZES = {
    "mmmf-v1": ("n_factors", 10**7, r"n_factors is 10000000, but the model has 3"),
    "nmf-v1": ("n_factors", 10**7, r"n_factors is 10000000, but the model has 3"),
    "svd-v1": ("n_factors", 10**7, r"n_factors is 10000000, but the model has 3"),
    "urp-v1": ("n_factors", 10**7, r"n_factors is 10000000, but the model has 3"),
    "attitude-v1": ("n_factors", 10**7, r"n_factors is 10000000, but the model has 3"),
    "gplvm-v1": ("n_factors", 10**7, r"n_factors is 10000000, but the model has 2"),
    "ipmmmf-v1": ("n_factors", 10**7, r"n_factors is 10000000, but the model has 3"),
    "bpmf-v1": ("n_samples", 10**7, r"n_samples is 10000000, but the model has 4"),
    "gibbsmmmf-v1": ("n_factors", 10**7, r"n_factors is 10000000, but the model has 2"),
    "ensemble-v1": ("n_estimators", 10**7, r"n_estimators is 10000000, but there are 2"),
}


@pytest.mark.parametrize(("kept", "tampered"), SIZES.items(), ids=SIZES)
def test_sizes_that_the_arrays_do_not_have_are_refused(kept, tampered, path):
    name, value, sentence = tampered
    whole = ModelParts(FOLDER / f"{kept}.marginmf")
    whole.params[name] = value
    whole.write(path)
    with pytest.raises(ModelFileError, match=sentence):
        marginmf.load(path)


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_a_parameter_that_fit_refuses_is_refused(kept, path):
    whole = ModelParts(kept)
    refused = {"n_jobs": 0, "max_iter": 0, "n_factors": 0, "reg": -1.0, "cv": 1, "tol": -1.0}
    known = [name for name in refused if name in whole.params]
    for name in known:
        made = whole.copy()
        for value in (refused[name], "many", {"dict": {"a": [1]}}, [[1], [2, 3]]):
            made.params[name] = value
            made.write(path)
            with pytest.raises(ModelFileError):
                marginmf.load(path)


def test_a_number_that_is_a_boolean_is_refused(path):
    whole = ModelParts(FOLDER / "gplvm-v1.marginmf")
    whole.fitted["block_size_"] = True
    whole.write(path)
    with pytest.raises(ModelFileError, match="block_size_ is of the type bool"):
        marginmf.load(path)


def test_an_ensemble_of_labels_has_as_many_members_as_its_parameter(path):
    model = marginmf.load(FOLDER / "labels-ensemble-v1.marginmf")
    model.members = ("ridge",)
    with pytest.raises(ValueError, match="members_ are of another number than members"):
        model.save(path)


def test_blocks_without_entries_are_refused(path):
    whole = ModelParts(FOLDER / "gplvm-v1.marginmf")
    whole.fitted["block_size_"] = 0
    whole.write(path)
    with pytest.raises(ModelFileError, match="block_size_ is 0, which is no size"):
        marginmf.load(path)


def test_profiles_of_nothing_but_zeros_answer(path):
    whole = ModelParts(FOLDER / "urp-v1.marginmf")
    write(whole, "item_profiles_", np.zeros_like(read(whole, "item_profiles_")))
    whole.write(path)
    assert faults(marginmf.load(path)) == []


@pytest.mark.parametrize("name", ["concentrations_", "user_attitudes_"])
def test_parameters_of_dirichlet_distributions_are_above_zero(name, path):
    """The digamma function of -3e68 is found by as many steps."""
    whole = ModelParts(FOLDER / "urp-v1.marginmf")
    changed = read(whole, name).copy()
    changed.flat[-1] = -3e68
    write(whole, name, changed)
    whole.write(path)
    with pytest.raises(ModelFileError, match="Dirichlet distributions that are not above zero"):
        marginmf.load(path)


def test_hmf_has_a_strength_for_each_stage(path):
    whole = ModelParts(FOLDER / "hmf-v1.marginmf")
    whole.fitted["reg_"] = whole.fitted["reg_"][:-1]
    whole.write(path)
    with pytest.raises(ModelFileError, match=r"\.reg_ has \d strengths for \d stages"):
        marginmf.load(path)


def test_biases_are_of_a_mean(path):
    whole = ModelParts(FOLDER / "als-calibrated-v1.marginmf")
    whole.fitted["_frequencies"]["object"][1]["mean"] = None
    whole.write(path)
    with pytest.raises(ModelFileError, match="has biases without a mean"):
        marginmf.load(path)
