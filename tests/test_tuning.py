"""Regularisation paths: which candidates are tried, and which one is chosen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marginmf.tuning import RegularisationPath, candidates_below, follow_path


def path_to(target, candidates, noise=0.0, seed=0, begin=None):
    rng, tried = np.random.default_rng(seed), []

    def errors_at(reg):
        tried.append(reg)
        return np.array([0.3 + 0.05 * np.log10(reg / target) ** 2 + noise * rng.normal()])

    return follow_path(errors_at, "error", candidates, begin), tried


@given(st.floats(2.0, 150.0))
def test_the_nearest_candidate_is_found_with_few_trials(target):
    path, tried = path_to(target, candidates_below(400.0))
    assert abs(np.log10(path.best / target)) <= 0.5 / 16 + 1e-9
    assert len(tried) == len(set(tried)) <= 13


def test_the_path_goes_from_strong_to_weak_and_stops_when_it_is_clearly_past():
    path, tried = path_to(50.0, candidates_below(400.0))
    coarse = tried[:-2]
    assert coarse == sorted(coarse, reverse=True)
    assert min(tried) > 5.0
    assert path.regs.tolist() == sorted(tried)


@given(st.floats(2.0, 150.0), st.floats(1.0, 300.0))
def test_the_walk_finds_the_best_from_wherever_it_begins(target, begin):
    path, tried = path_to(target, candidates_below(400.0), begin=begin)
    assert abs(np.log10(path.best / target)) <= 0.5 / 16 + 1e-9
    assert abs(np.log10(tried[0] / np.clip(begin, 1.8, 200.0))) <= 1 / 16
    assert len(tried) == len(set(tried)) <= 13


def test_a_good_guess_saves_trials():
    guessed, far = (path_to(20.0, candidates_below(400.0), begin=b)[1] for b in (20.0, None))
    assert len(guessed) < len(far)


def test_one_hopeless_candidate_ends_the_walk_and_one_that_is_merely_worse_does_not():
    def regs_below_ten(excess):
        tried = []

        def errors_at(reg):
            tried.append(reg)
            return np.array([0.5 if reg > 10 else 0.5 * (1 + excess)])

        follow_path(errors_at, "error", candidates_below(200.0), 15.0)
        return sum(reg < 8 for reg in tried)

    assert regs_below_ten(0.05) == 0
    assert regs_below_ten(0.03) == 1
    assert regs_below_ten(0.01) == 2


def test_noise_is_smoothed_away():
    found = [path_to(20.0, candidates_below(400.0), 0.002, seed)[0] for seed in range(30)]
    off = {
        name: np.mean([abs(np.log10(getattr(path, name) / 20.0)) for path in found])
        for name in ("best", "smallest")
    }
    assert off["best"] < 0.8 * off["smallest"]


def test_a_plateau_does_not_end_the_descent():
    def errors_at(reg):
        return np.array([0.300 if reg > 10 else 0.25 if reg > 5 else 0.4])

    path = follow_path(errors_at, "error", candidates_below(400.0))
    assert 5 < path.best < 11


def test_errors_of_all_hold_outs_are_kept():
    path = follow_path(lambda reg: np.array([reg, 2 * reg]), "size", candidates_below(400.0))
    assert path.errors.shape == (len(path.regs), 2)
    np.testing.assert_allclose(path.mean, 1.5 * path.regs)
    assert path.best == path.regs[0]


def test_equal_errors_choose_the_strongest():
    path = RegularisationPath(np.array([1.0, 10.0, 100.0]), np.full((3, 1), 0.5), "error")
    assert path.smallest == 100.0


@pytest.mark.parametrize("limit", [0.0, 1e-6, 0.5, 40.0, 1e9])
def test_there_is_always_a_candidate(limit):
    candidates = candidates_below(limit)
    assert len(candidates) >= 1
    assert (np.diff(candidates) > 0).all()
    assert candidates.max() <= max(0.5 * limit, 1e-300) * 1.001 or candidates.max() <= 317
