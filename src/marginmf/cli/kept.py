"""Tables of measures in files, in the form that the ending of the name says."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marginmf.cli.destination import PICTURES, check_destination, write_text
from marginmf.cli.printing import to_json
from marginmf.cli.tables import as_csv, as_markdown

if TYPE_CHECKING:
    from marginmf.cli.scores import Scores

#: How a table is written, by the ending of the file.
WRITERS: dict[str, Callable[..., str]] = {
    ".csv": lambda scores, shown, result: as_csv(scores, shown),
    ".md": lambda scores, shown, result: as_markdown(scores, shown),
    ".json": lambda scores, shown, result: to_json(result, "utf-8") + "\n",
}


def check_kept(out: Path | None) -> None:
    """Raise an error if a table cannot be kept there: better now than after the work."""
    if out is None:
        return
    check_destination(out, "table", formats=(*WRITERS, *PICTURES))
    if out.suffix.lower() in PICTURES:
        from marginmf.plots.style import require_matplotlib

        require_matplotlib()


def keep_table(
    scores: "Mapping[str, Scores]",
    result: dict[str, Any],
    out: Path,
    shown: tuple[str, ...],
    drawn: Sequence[str],
) -> None:
    """Write the measures that are shown, or draw those that are drawn."""
    ending = out.suffix.lower()
    if ending in WRITERS:
        write_text(out, WRITERS[ending](scores, shown, result))
        return
    from marginmf import plots
    from marginmf.cli.picture import save_figure

    values = {
        name: {metric: own.values[metric] for metric in drawn} for name, own in scores.items()
    }
    save_figure(plots.error_bars(values), out)
