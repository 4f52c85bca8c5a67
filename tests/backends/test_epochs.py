"""The exponential that covariances are filled with, against that of NumPy.

What the other kernels of epochs compute is compared with plain NumPy in the tests of `NMF`, `SVD`
and `GPLVM`.
"""

import numpy as np
import pytest
from numba import njit

from marginmf.backends.cpu.epochs import exponential


@njit
def fill(x, out):
    for i in range(len(x)):
        out[i] = exponential(x[i])


@pytest.mark.parametrize(("lowest", "tolerance"), [(-5.0, 2e-13), (-30.0, 1e-9), (-100.0, 2e-6)])
def test_the_exponential_is_that_of_numpy(lowest, tolerance):
    x = np.linspace(lowest, 0.0, 20_001)
    found, expected = np.empty_like(x), np.exp(x)
    fill(x, found)
    np.testing.assert_allclose(found, expected, rtol=tolerance)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-13)


def test_far_below_the_exponential_stays_above_zero():
    x = np.array([-1e3, -1e300, -np.inf])
    out = np.empty(3)
    fill(x, out)
    np.testing.assert_allclose(out, np.exp(-100.0), rtol=2e-6)
