"""The typer application that the commands for label sets belong to."""

from marginmf.cli.commands import command_group
from marginmf.cli.labels import compare, evaluate, fit, predict

#: Every command, and the example at the end of its help.
COMMANDS = {
    fit.fit: fit.EXAMPLE,
    predict.predict: predict.EXAMPLE,
    evaluate.evaluate: evaluate.EXAMPLE,
    compare.compare: compare.EXAMPLE,
}
app = command_group("Learn label sets: fit, predict, evaluate and compare.", COMMANDS)
