"""The `tinylight` command. Exit code 0: passed; 1: a verdict failed; 2: bad input, one line on stderr saying what is wrong."""

import sys
from typing import NoReturn

import typer

from hil.commands.board import board
from hil.commands.check import check
from hil.commands.common import errors
from hil.commands.cost import cost
from hil.commands.evaluate import evaluate
from hil.commands.hil import hil
from hil.commands.make_network import make_network
from hil.commands.networks import networks
from hil.commands.plot import plot
from hil.commands.replay import replay
from hil.commands.share import share
from hil.commands.size import size
from hil.commands.table import table
from hil.commands.train import train
from streetflow.errors import InputError, StepError

app = typer.Typer(
    name="tinylight",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Traffic lights that learn, on a microcontroller: train a TinyLight policy, and prove it on the chip "
    "(an ATmega328P, real or emulated) with the traffic simulator in the loop.",
)
COMMANDS = (
    hil,
    evaluate,
    train,
    plot,
    size,
    networks,
    replay,
    make_network,
    check,
    table,
    cost,
    board,
    share,
)
for command in COMMANDS:
    app.command()(command)


def main() -> NoReturn:
    """Entry point: runs the command line and turns bad input into one line and exit code 2."""
    from hil.build import BuildError

    try:
        app()
    except (InputError, BuildError, StepError) as fault:
        errors.print(f"tinylight: {fault}", style="red", markup=False, highlight=False)
        sys.exit(2)
    except KeyboardInterrupt:
        errors.print("tinylight: stopped", style="red")
        sys.exit(130)
    sys.exit(0)


if __name__ == "__main__":
    main()
