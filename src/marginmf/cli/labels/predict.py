"""``marginmf labels predict``: the labels that a saved model expects for the rows of a file."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from marginmf.cli.labels.options import LabelColumns
from marginmf.cli.options import ModelFile, TalkOptions, takes_groups

EXAMPLE = "marginmf labels predict l.marginmf songs.csv --out found.csv"


@takes_groups
def predict(
    *,
    model: ModelFile,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Features, as in the file of the fit.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="A .csv, .tsv, .jsonl (or .gz of these), .parquet, .arrow or .npz file."),
    ] = None,
    form: Annotated[
        Literal["names", "table"],
        typer.Option(
            "--as", help="The names of each row's labels, or a column of 0 and 1 a label."
        ),
    ] = "names",
    scores: Annotated[
        bool,
        typer.Option("--scores", help="Also how far each label is above its threshold."),
    ] = False,
    top: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="K",
            help="The K best labels of each row instead, a line each, with their scores.",
            show_default=False,
        ),
    ] = None,
    columns: LabelColumns,
    talk: TalkOptions,
) -> None:
    """Predict the labels of every row of a file; print CSV or write a file.

    Rows keep their order and are counted from 1; names of labels have a semicolon between them.
    Features are found by their names where file and model have them; those of svmlight files by
    their numbers, and what no row names is 0. Columns that are called as labels of the model are no
    features.
    """
    from marginmf.cli.destination import check_table, refuse_same
    from marginmf.cli.labels.data import read_rows
    from marginmf.cli.labels.predictions import ARRAYS, Predictions, aligned
    from marginmf.cli.printing import to_json
    from marginmf.cli.saved import load_labels_model
    from marginmf.datasets import write_columns

    check_table(out, "table", also=(ARRAYS,))
    refuse_same(out, model, file, columns.xml)
    in_arrays = out is not None and out.suffix.lower() == ARRAYS
    if in_arrays and (top is not None or form == "table"):
        raise ValueError(
            f"{out} holds labels as arrays, and their scores with --scores: leave --top and --as "
            "out, or name a .csv file."
        )
    if top is not None and (scores or form == "table"):
        raise ValueError("--top has scores of its own: leave --scores and --as out.")
    fitted = load_labels_model(model)
    names = tuple(map(str, fitted.classes_))
    table = read_rows(file, names, fitted, columns)
    found = Predictions(fitted, aligned(table, fitted), names, form, scores, top)
    predictions: Any = None
    if out is not None and in_arrays:
        found.write_arrays(out)
    elif talk.as_json and out is None:
        predictions = found.records()
    else:
        write_columns("-" if out is None else out, found.pieces())
    if talk.as_json:
        summary = {
            "model": str(model),
            "n_rows": len(found),
            "out": None if out is None else str(out),
        }
        listed = {} if predictions is None else {"predictions": predictions}
        typer.echo(to_json({**summary, **listed}))
    elif out is not None:
        talk.out.print(
            f"The labels of {len(found):,} rows are in {out}.", markup=False, soft_wrap=True
        )
