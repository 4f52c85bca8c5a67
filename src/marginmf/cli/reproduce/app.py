"""The typer application of the commands that measure the thesis's tables and figures again."""

from marginmf.cli.commands import command_group
from marginmf.cli.reproduce import check, listing, report, running

#: Every command, and the example at the end of its help.
COMMANDS = {
    listing.list_: listing.EXAMPLE,
    running.run: running.EXAMPLE,
    report.report: report.EXAMPLE,
    check.check: check.EXAMPLE,
}
app = command_group(
    "Measure the tables and figures of the thesis again: list, run, report and check.", COMMANDS
)
