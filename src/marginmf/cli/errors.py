"""Errors on the command line: one line each, without a traceback."""

import sys
import warnings
from typing import Any

import typer
from typer.core import TyperGroup

BAD_INPUT, INTERRUPTED = 2, 130

#: What the library raises when the input, the machine or an extra is at fault.  Anything else is
#: a fault of the library, and its traceback is wanted.
EXPECTED = (ValueError, OSError, ImportError, FloatingPointError, MemoryError)


class CommandGroup(TyperGroup):
    """Commands whose expected errors become one line on standard error and an exit code."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run the program; arguments that it does not understand are one line too."""
        try:
            code = super().main(*args, standalone_mode=False, **extra)  # type: ignore[misc]
        except Exception as error:
            # Typer has changed where its errors of usage come from, but not what they can do.
            if not standalone_mode or not hasattr(error, "format_message"):
                raise
            print_error(_usage(error))
            sys.exit(BAD_INPUT)
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning  # type: ignore[assignment]
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                print_error("interrupted.")
                raise typer.Exit(INTERRUPTED) from None
            except BrokenPipeError:  # whoever read our output has gone: typer ends quietly
                raise
            except EXPECTED as error:
                print_error(describe_error(error))
                raise typer.Exit(BAD_INPUT) from None


def print_error(text: str) -> None:
    """Print one line to standard error."""
    typer.echo(f"marginmf: {text}", err=True)


def describe_error(error: BaseException) -> str:
    r"""Return an error's message in one line.

    >>> describe_error(ValueError("No ratings:\n  add some."))
    'No ratings: add some.'
    >>> describe_error(PermissionError(13, "Permission denied", "a.csv"))
    'a.csv: Permission denied.'
    """
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, MemoryError):
        return f"There is not enough memory. {_one_line(error)}".strip()
    return _one_line(error) or type(error).__name__


def _usage(error: Any) -> str:
    """Return what was wrong with the arguments, and where to read how they are meant."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "marginmf"
    message = _one_line(error.format_message())
    return f"{message.rstrip('.')}{'' if message.endswith('?') else '.'} See {command} --help."


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


def _print_warning(message: Warning | str, *rest: Any) -> None:
    print_error(_one_line(message))
