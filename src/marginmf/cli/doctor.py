"""``marginmf doctor``: whether everything that marginmf needs is here and works."""

import typer

from marginmf.cli.options import TalkOptions, takes_groups

EXAMPLE = "marginmf doctor"
MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "wrong": ("wrong", "bold red")}


@takes_groups
def doctor(talk: TalkOptions) -> None:
    """Check versions, extras, cores, folders, GPU and the compiled kernels.

    Ends with exit code 1 if something has to be mended, and says how.
    """
    from dataclasses import asdict

    from rich.text import Text

    from marginmf.cli.diagnosis import findings
    from marginmf.cli.printing import new_table, to_json

    with talk.notes.status("Checking, and compiling the kernels if that is the first time"):
        found = list(findings())
    wrong = [one for one in found if one.verdict == "wrong"]
    if talk.as_json:
        checks = {one.name: asdict(one) for one in found}
        typer.echo(to_json({"healthy": not wrong, "checks": checks}))
    table = new_table("check", "", "found")
    for one in found:
        word, style = MARKS[one.verdict]
        said = Text(f"{one.found}. To mend it: {one.advice}." if one.advice else one.found)
        table.add_row(one.name, Text(word, style), said)
    talk.out.print(table)
    if wrong:
        listed = ", ".join(one.name for one in wrong)
        talk.out.print(f"Something is wrong with: {listed}.", soft_wrap=True, markup=False)
        raise typer.Exit(1)
    talk.out.print("All is well.")
