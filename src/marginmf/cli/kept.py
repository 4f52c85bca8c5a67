"""Tables of measures in files, in the form that the ending of the name says."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marginmf.cli.destination import PICTURES, check_destination, write_text
from marginmf.cli.printing import to_json
from marginmf.cli.tables import as_csv, as_markdown

if TYPE_CHECKING:
    from marginmf.cli.scores import Scores

#: The forms of a table that are text, by the ending of the file.
TEXTS = (".csv", ".md", ".json")


def check_kept(out: Path | None) -> None:
    """Raise an error if a table cannot be kept there: better now than after the work."""
    if out is None:
        return
    check_destination(out, "table", formats=(*TEXTS, *PICTURES))
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
    values = {
        name: {metric: own.values[metric] for metric in drawn} for name, own in scores.items()
    }
    texts = {".csv": lambda: as_csv(scores, shown), ".md": lambda: as_markdown(scores, shown)}
    write_form(out, texts, result, values)


def write_form(
    out: Path,
    texts: Mapping[str, Callable[[], str]],
    result: dict[str, Any],
    values: "Mapping[str, Mapping[str, Sequence[float]]]",
) -> None:
    """Write a table in the form of its ending: one of the texts, the result, or a picture."""
    ending = out.suffix.lower()
    if ending in texts:
        write_text(out, texts[ending]())
    elif ending == ".json":
        write_text(out, to_json(result, "utf-8") + "\n")
    else:
        from marginmf import plots
        from marginmf.cli.picture import save_figure

        save_figure(plots.error_bars(values), out)
