"""The `tinylight` command. Exit code 0: passed; 1: a verdict failed; 2: bad input, one line on stderr saying what is wrong;
130: stopped with Ctrl-C."""

import sys
import warnings
from typing import Annotated, NoReturn

import typer

from hil.commands.board import board
from hil.commands.check import check
from hil.commands.common import errors, say
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
from streetflow.errors import InputError, StepError, tell_input_warnings

STOPPED = 130  # exit code after Ctrl-C

app = typer.Typer(
    name="tinylight",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Traffic lights that learn, on a microcontroller: train a TinyLight policy, and prove it on the chip "
    "(an ATmega328P, real or emulated) with the traffic simulator in the loop.",
)


def _tell_version(asked: bool) -> None:
    if asked:
        from model.provenance import tool_version

        say(f"tinylight {tool_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    pass


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
    """Entry point: runs the command line and turns bad input into one line and exit code 2. Whatever the system refuses (a
    folder that can't be written, a name that is too long) and no command has a better word for is bad input as well."""
    from hil.build import BuildError

    with warnings.catch_warnings():
        tell_input_warnings(lambda text: _tell(text, "yellow"))
        try:
            app()
        except (InputError, BuildError, StepError) as fault:
            _tell(str(fault), "red")
            sys.exit(2)
        except OSError as fault:
            _tell(f"{fault.filename}: {fault.strerror}" if fault.filename else str(fault), "red")
            sys.exit(2)
        except KeyboardInterrupt:
            _stopped()
        except SystemExit as left:  # so the commands' framework ends, and Ctrl-C too
            if left.code == STOPPED:
                _stopped()
            raise
    sys.exit(0)


def _stopped() -> NoReturn:
    _tell("stopped", "red")
    sys.exit(STOPPED)


def _tell(text: str, style: str) -> None:
    errors.print(f"tinylight: {text}", style=style, markup=False, highlight=False)


if __name__ == "__main__":
    main()
