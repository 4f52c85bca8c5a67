"""How a function becomes a command: groups of options, an example in its help, errors in one line.

A command takes a group as one parameter, and typer shows the group's fields as options::

    @command("marginmf fit ratings.csv --out m.marginmf")
    def fit(data: DataOptions, model: ModelOptions) -> None: ...

The library names parameters in its errors, such as ``reg=-1``; here they become options.
"""

import ast
import inspect
import json
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Set
from contextlib import suppress
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import ArgumentInfo, OptionInfo

from marginmf._utils.printable import LONGEST_MESSAGE, printable

Function = Callable[..., None]
SETTINGS: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
BAD_INPUT, INTERRUPTED = 2, 130
#: What the library raises when the input, the machine or an extra is at fault.  Anything else is
#: a fault of the library, and its traceback is wanted.
EXPECTED = (ValueError, OSError, ImportError, FloatingPointError, MemoryError)
#: Options with another name than the parameter of the library that they set.
OPTIONS = {
    "item_features": ("--items",),
    "n_factors": ("--factors",),
    "n_jobs": ("--threads",),
    "n_levels": ("--levels",),
    "n_splits": ("--splits", "--cv"),
    "n_train_users": ("--train-users",),
    "param_grid": ("--try",),
    "random_state": ("--seed",),
    "top1_if_empty": ("--top1",),
    "user_features": ("--users",),
}
#: What the help calls values of a type.
METAVARS = {int: "N", float: "X", Path: "FILE"}
VALUE = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\[[^\]]*\]|\([^)]*\)|-?\w+(?:[.+-]\w+)*"""
#: A parameter and its value in a message, such as ``reg=-1``, ``labels=[...]`` or ``user=``.
PARAMETER = re.compile(rf"""(?<![\w.=<'"-])([a-z]\w*)=({VALUE})?(?=[\s,.;:)]|$)""")
#: What stands for a value, such as n or -n.
STAND_IN = re.compile("-?[a-z]+")
#: A call whose arguments are what matters, such as ``Ratings.of(..., duplicates='last')``.
CALL = re.compile(r"(?<![=\w.])[\w.]+\((?:(?:\.\.\.|frame), )?(\w+=[^()]*)\)")
#: A method whose command has another form.
UPDATE = re.compile(r"\bupdate_(users|items)\b")
#: Advice that is the second of two, up to the end of its sentence.
ALTERNATIVE = re.compile(r",? or [^.;]*?(?=[.;](?:\s|$))")
#: What only Python can give.
OBJECTS = re.compile(r"\b(?:pass an?|objects?|estimators?)\b")
#: Parameters that are named without a value.
NAMED = re.compile(r"(?<![\w.='\"-])[a-z]+(?:_[a-z0-9]+)+(?![\w.='\"])")


@dataclass(frozen=True)
class Command:
    """A function that typer can call, its name on the command line, and an example."""

    function: Function
    name: str
    example: str

    def add_to(self, app: typer.Typer) -> None:
        """Make it a command of an application."""
        # Typer would keep the line ends of the docstring, whatever the width of the terminal.
        paragraphs = inspect.cleandoc(self.function.__doc__ or "").split("\n\n")
        text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        example = f"Example: {self.example}"
        app.command(self.name, cls=PlainCommand, help=text, epilog=example)(self.function)


def command(example: str, name: str | None = None) -> Callable[[Function], Command]:
    """Make a command of a function whose name, unless another is given, is the command's."""
    return lambda run: Command(expand_groups(run), name or run.__name__, example)


def command_group(text: str, commands: Iterable[Command]) -> typer.Typer:
    """Return an application of its own; without a command, it shows its help."""
    app = typer.Typer(help=text, cls=CommandGroup, invoke_without_command=True, **SETTINGS)
    app.callback(help=text)(show_help)
    for one in commands:
        one.add_to(app)
    return app


def show_help(context: typer.Context) -> None:
    """Print the help of a group of commands if none of them was asked for."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), nl=False)


def expand_groups(function: Function) -> Function:
    """Let typer see the fields of a function's option groups as options of its own."""
    parameters = inspect.signature(function).parameters.values()
    groups: dict[str, Any] = {
        one.name: one.annotation for one in parameters if is_dataclass(one.annotation)
    }
    shown: list[inspect.Parameter] = []
    for one in parameters:
        if one.name not in groups:
            annotation = _for_help(one.annotation)
            shown.append(one.replace(kind=one.KEYWORD_ONLY, annotation=annotation))
            continue
        panel = getattr(groups[one.name], "panel", None)
        for field in fields(groups[one.name]):
            default = one.empty if field.default is MISSING else field.default
            option = inspect.Parameter(field.name, one.KEYWORD_ONLY, default=default)
            shown.append(option.replace(annotation=_for_help(field.type, panel)))

    @wraps(function)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        function(**values)

    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return run


def _for_help(annotation: Any, panel: str | None = None) -> Any:
    """Return an option's annotation with a word for its values, under a heading of the help."""
    kind, option = get_args(annotation) or (annotation, None)
    if not isinstance(option, OptionInfo):
        return annotation
    shown = copy(option)
    shown.rich_help_panel = panel
    for one, word in METAVARS.items():
        if shown.metavar is None and (kind is one or one in get_args(kind)):
            shown.metavar = word
    return Annotated[kind, shown]


def as_arguments(group: Any) -> list[str]:
    """Return the options of a group that are not the defaults, as they are written."""
    words: list[str] = []
    for field in fields(group):
        value, option = getattr(group, field.name), get_args(field.type)[1]
        if isinstance(option, ArgumentInfo) or value == field.default:
            continue
        written = (option.default, f"--{field.name.replace('_', '-')}")  # where typer keeps it
        name = next(one for one in written if isinstance(one, str))
        yes, _, no = name.partition("/")
        for one in value if isinstance(value, list) else [value]:
            words += [yes if one else no] if isinstance(one, bool) else [name, str(one)]
    return words


class _PlainHelp:
    """Help that does not say what a flag takes, which is nothing."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments of a command."""
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for one in found:
            if getattr(one, "is_flag", False) and one.metavar is None:
                one.metavar = ""
        return found


class PlainCommand(_PlainHelp, TyperCommand):
    """A command with plain help."""


class CommandGroup(_PlainHelp, TyperGroup):
    """Commands whose expected errors become one line on standard error and an exit code."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run the program; arguments that it does not understand are one line too."""
        try:
            code = super().main(*args, standalone_mode=False, **extra)  # type: ignore[misc]
        except Exception as error:
            if standalone_mode and isinstance(error, OSError):  # of printing the help
                print_error(describe_error(error))
                sys.exit(BAD_INPUT)
            # Typer has changed where its errors of usage come from, but not what they can do.
            if not standalone_mode or not hasattr(error, "format_message"):
                raise
            message = describe_usage(error)
            end = "" if message.endswith("?") else "."
            context = getattr(error, "ctx", None)
            path = context.command_path if context else getattr(error, "path", "marginmf")
            print_error(f"{message.rstrip('.')}{end} See {path} --help.")
            sys.exit(BAD_INPUT)
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        said: set[str] = set()

        def show(message: Warning | str, *rest: Any) -> None:
            text = in_options(_one_line(message), self._options(ctx))
            if text not in said:  # each of many fits may say the same
                said.add(text)
                print_error(text)

        with warnings.catch_warnings():
            warnings.showwarning = show  # type: ignore[assignment]
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                print_error("interrupted.")
                raise typer.Exit(INTERRUPTED) from None
            except BrokenPipeError:  # the reader of our output has gone: typer ends quietly
                raise
            except EXPECTED as error:
                print_error(describe_error(error, self._options(ctx)))
                raise typer.Exit(BAD_INPUT) from None
            except Exception as error:
                if hasattr(error, "format_message") and getattr(error, "ctx", None) is None:
                    # Typer does not always say what it was that it did not understand.
                    error.__dict__.setdefault(
                        "path", f"{ctx.command_path} {ctx.invoked_subcommand}"
                    )
                raise

    def _options(self, ctx: Any) -> frozenset[str]:
        """Return the options of the command that was asked for."""
        asked = self.get_command(ctx, ctx.invoked_subcommand or "")
        params = getattr(asked, "params", ())
        return frozenset(name for one in params for name in (*one.opts, *one.secondary_opts))


def print_error(text: str) -> None:
    """Print one line to standard error, if that can be written to."""
    with suppress(OSError):
        typer.echo(f"marginmf: {printable(text, LONGEST_MESSAGE)}", err=True)


def describe_usage(error: Any) -> str:
    """Return what is wrong with an argument in one line, with the argument."""
    option = getattr(getattr(error, "param", None), "opts", [""])[0]
    reason = _one_line(error.message)
    if not option.startswith("-") or not reason:
        return _one_line(error.format_message())
    reason = reason.removeprefix("Value error, ")
    if hasattr(error.__cause__, "errors"):  # those of pydantic do not show the value
        wanted = reason.removeprefix("Input ").partition(",")[0]
        given = error.__cause__.errors()[0].get("input")
        reason = reason if reason.startswith("'") else f"{given!r} {wanted}"
    return f"{option}: {reason}"


def describe_error(error: BaseException, options: Set[str] = frozenset()) -> str:
    r"""Return an error's message in one line, in the words of a command with these options.

    >>> describe_error(ValueError("No ratings:\n  add some."))
    'No ratings: add some.'
    >>> describe_error(PermissionError(13, "Permission denied", "a.csv"))
    'a.csv: Permission denied.'
    """
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'Reading or writing failed'}: {error.strerror}."
    if isinstance(error, MemoryError):
        return f"There is not enough memory. {_one_line(error)}".strip()
    message = _one_line(error) or type(error).__name__
    return message if _raised_here(error) else in_options(message, options)


def in_options(message: str, options: Set[str]) -> str:
    """Return a message of the library in the words of a command with these options.

    Advice that no option can follow is left out where there is other advice.

    >>> in_options("reg=-1.0 must be a number >= 0.", {"--reg"})
    '--reg -1 must be a number >= 0.'
    >>> in_options("tol='soon' must be a number.", {"--set"})
    '--set tol=soon must be a number.'
    >>> in_options("Give names with labels=['a', 'b'], or kind=.", {"--labels"})
    'Give names with --labels a,b.'
    """
    message = CALL.sub(r"\1", UPDATE.sub(r"marginmf update --side \1", message))

    def shortened(match: re.Match[str]) -> str:
        names = [name for name, _ in PARAMETER.findall(match[0])]
        unsettable = any(_option(name, options) is None for name in names)
        return "" if unsettable or OBJECTS.search(match[0]) else match[0]

    def translated(match: re.Match[str]) -> str:
        name, written = match.groups()
        option = _option(name, options)
        if option is None or (option == "--set" and written is None):
            return match[0]
        if written is None:
            return option
        if written == "[...]":
            return f"{option} NAME,..."
        try:
            value = ast.literal_eval(written)
        except (ValueError, SyntaxError):
            if not STAND_IN.fullmatch(written):
                return match[0]
            value = written
        if isinstance(value, bool) and f"--no-{option[2:]}" in options:
            return option if value else f"--no-{option[2:]}"
        if option == "--set":
            return f"--set {shlex.quote(f'{name}={_format(value, nested=True)}')}"
        return option if value is True else f"{option} {shlex.quote(_format(value))}"

    message = PARAMETER.sub(translated, ALTERNATIVE.sub(shortened, message))
    return NAMED.sub(lambda match: _option(match[0], options - {"--set"}) or match[0], message)


def _option(name: str, options: Set[str]) -> str | None:
    """Return the option that sets a parameter of the library, ``--set`` if it has none of its own.

    None if nothing here can set it.
    """
    own = (*OPTIONS.get(name, ()), f"--{name.replace('_', '-')}")
    found = next((option for option in own if option in options), None)
    if found is None and "--set" in options:
        from marginmf.cli.estimators import all_parameters

        found = "--set" if name in all_parameters() else None
    return found


def _format(value: Any, nested: bool = False) -> str:
    """Write a value as options take it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and not nested:
        return ",".join(_format(one) for one in value)
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps(value, default=str)


def _raised_here(error: BaseException) -> bool:
    """Whether the command line itself, whose words are options, is where an error comes from."""
    while error.__cause__ is not None:
        error = error.__cause__
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
    return module.startswith("marginmf.cli")


def _one_line(text: object) -> str:
    return printable(" ".join(str(text).split()), LONGEST_MESSAGE)
