"""What goes wrong on the command line is said in one line, without a traceback."""

import warnings
from typing import Any

import typer
from typer.core import TyperGroup

BAD_INPUT, INTERRUPTED = 2, 130

#: What the library raises when the input, the machine or an extra is at fault.  Anything else is
#: a fault of the library, and its traceback is wanted.
EXPECTED = (ValueError, OSError, ImportError, FloatingPointError)


class SentenceGroup(TyperGroup):
    """Commands whose expected errors become one line on standard error and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        with warnings.catch_warnings():
            warnings.showwarning = _say_warning  # type: ignore[assignment]
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                say("interrupted.")
                raise typer.Exit(INTERRUPTED) from None
            except BrokenPipeError:  # whoever read our output has gone: typer ends quietly
                raise
            except EXPECTED as error:
                say(sentence(error))
                raise typer.Exit(BAD_INPUT) from None


def say(text: str) -> None:
    """Print one line to standard error."""
    typer.echo(f"marginmf: {text}", err=True)


def sentence(error: BaseException) -> str:
    r"""Return an error's message in one line.

    >>> sentence(ValueError("No ratings:\n  add some."))
    'No ratings: add some.'
    >>> sentence(PermissionError(13, "Permission denied", "a.csv"))
    'a.csv: Permission denied.'
    """
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}."
    return " ".join(str(error).split()) or type(error).__name__


def _say_warning(message: Warning | str, *rest: Any) -> None:
    say(" ".join(str(message).split()))
