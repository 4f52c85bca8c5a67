"""The typer application of the commands that measure the thesis's tables and figures again."""

from marginmf.cli.commands import command_group
from marginmf.cli.reproduce import check, listing, report, running

COMMANDS = (listing.list_, running.run, report.report, check.check)
app = command_group(
    "Measure the tables and figures of the thesis again: list, run, report and check.", COMMANDS
)
