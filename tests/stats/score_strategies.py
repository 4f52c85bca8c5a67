"""Made-up scores for property tests."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

#: Other work on the machine must not fail a test.
patient = settings(deadline=None)


@st.composite
def score_arrays(draw: st.DrawFn, min_datasets: int = 2, min_methods: int = 2) -> np.ndarray:
    """Whole numbers from a short range, so that there are many ties."""
    shape = (draw(st.integers(min_datasets, 12)), draw(st.integers(min_methods, 7)))
    return draw(arrays(np.float64, shape, elements=st.integers(0, 8).map(float)))
