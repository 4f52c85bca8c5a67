"""The typer application that the commands for datasets belong to."""

from marginmf.cli.commands import command_group
from marginmf.cli.datasets import getting, listing, showing

#: Every command, and the example at the end of its help.
COMMANDS = {
    listing.list_: listing.EXAMPLE,
    getting.get: getting.EXAMPLE,
    showing.info: showing.INFO_EXAMPLE,
    showing.path: showing.PATH_EXAMPLE,
}
app = command_group(
    "Datasets known by name: list them, get them, and see what is known of them.", COMMANDS
)
