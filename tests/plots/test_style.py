import subprocess
import sys

import pytest

from marginmf.plots import level_confusion
from marginmf.plots.style import axes_or_new, new_figure, require_matplotlib


def test_matplotlib_is_imported_when_something_is_drawn_and_pyplot_never() -> None:
    code = (
        "import sys; from marginmf.plots import level_confusion;"
        "early = 'matplotlib' in sys.modules;"
        "level_confusion([1, 2], [1, 2], [1, 2]);"
        "sys.exit(early or 'matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_missing_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # importing it now fails
    with pytest.raises(ImportError, match=r"pip install 'marginmf\[plots\]'"):
        require_matplotlib()
    with pytest.raises(ImportError, match=r"pip install 'marginmf\[plots\]'"):
        level_confusion([1, 2], [1, 2], [1, 2])


def test_given_axes_are_used() -> None:
    left, right = new_figure(8, 4).subplots(1, 2)
    assert axes_or_new(left) is left
    assert level_confusion([1, 2], [1, 2], [1, 2], right) is right
