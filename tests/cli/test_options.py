from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from marginmf.cli.comparison import make_protocol
from marginmf.cli.options import ProtocolOptions, takes_groups
from marginmf.protocols import HoldOut, KFold, StrongGeneralisation, WeakGeneralisation


@dataclass(frozen=True)
class Group:
    size: Annotated[int, typer.Option("--size")] = 3
    name: Annotated[str, typer.Option("--name")] = "x"


def program() -> typer.Typer:
    app = typer.Typer()

    @app.command()
    @takes_groups
    def show(group: Group, loud: bool = False) -> None:
        typer.echo(f"{group} {loud}")

    return app


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ([], "Group(size=3, name='x') False"),
        (["--size", "5", "--loud"], "Group(size=5, name='x') True"),
        (["--name", "y"], "Group(size=3, name='y') False"),
    ],
)
def test_a_group_arrives_as_one_object(arguments: list[str], printed: str) -> None:
    assert CliRunner().invoke(program(), arguments).stdout.strip() == printed


@pytest.mark.parametrize(
    ("options", "protocol"),
    [
        (ProtocolOptions("weak", 2, held_out=3), WeakGeneralisation(2, 7, 3)),
        (ProtocolOptions("holdout", 1, test_size=0.5), HoldOut(1, 7, 0.5)),
        (ProtocolOptions("kfold", 4), KFold(4, 7)),
        (
            ProtocolOptions("strong", 1, train_users=0.5, min_ratings=4),
            StrongGeneralisation(0.5, 1, 4, 1, 7),
        ),
        (ProtocolOptions("strong", train_users=5000), StrongGeneralisation(5000, random_state=7)),
    ],
)
def test_a_protocol_gets_its_own_options(options: ProtocolOptions, protocol: object) -> None:
    assert make_protocol(options, seed=7) == protocol
