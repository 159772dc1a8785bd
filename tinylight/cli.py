"""The `tinylight` command. Exit code 0: passed; 1: a verdict failed; 2: bad input, one line on stderr saying what is wrong;
130: stopped with Ctrl-C; 143: with SIGTERM."""

import sys
import warnings
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from streetflow.errors import InputError, StepError, report_input_warnings
from streetflow.near import did_you_mean
from tinylight.commands.board import board
from tinylight.commands.check import check
from tinylight.commands.cost import cost
from tinylight.commands.evaluate import evaluate
from tinylight.commands.flash import flash
from tinylight.commands.hil import hil
from tinylight.commands.import_sumo import import_sumo
from tinylight.commands.make_flow import make_flow
from tinylight.commands.make_network import make_network
from tinylight.commands.networks import networks
from tinylight.commands.options import options_named
from tinylight.commands.plot import plot
from tinylight.commands.quantise import quantise
from tinylight.commands.replay import replay
from tinylight.commands.share import share
from tinylight.commands.size import size
from tinylight.commands.stress import stress
from tinylight.commands.table import table
from tinylight.commands.train import train
from tinylight.console import errors, say
from tinylight.exit_codes import STOPPED


class _Commands(TyperGroup):
    def get_command(self, context: Any, name: str) -> Any:
        """InputError for an unknown command."""
        found = super().get_command(context, name)
        if found is None:
            raise InputError(name, "", f"unknown command{did_you_mean(name, self.commands) or '; see --help'}")
        return found


class _Command(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """InputError for an empty value, which would be taken for the default or for the current folder."""
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        for parameter in self.get_params(ctx):
            value = given.get(parameter.name)
            if "" in (value if isinstance(value, list | tuple) else [value]):
                name = parameter.opts[0] if parameter.param_type_name == "option" else parameter.metavar
                raise InputError(f"{name}", "", f"has no value; see {ctx.command_path} --help")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Errors about values name their options."""
        with options_named(ctx):
            return super().invoke(ctx)


app = typer.Typer(
    name="tinylight",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Traffic lights that learn, on a microcontroller: train a TinyLight policy, and prove it on the chip "
    "(an ATmega328P, real or emulated) with the traffic simulator in the loop.",
)


def _show_version(asked: bool) -> None:
    if asked:
        from model.policy.provenance import tool_version

        say(f"tinylight {tool_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    pass


COMMANDS = (
    hil,
    evaluate,
    train,
    quantise,
    plot,
    size,
    networks,
    replay,
    make_network,
    make_flow,
    import_sumo,
    check,
    table,
    stress,
    cost,
    board,
    share,
    flash,
)
for command in COMMANDS:
    app.command(cls=_Command)(command)


def run() -> int:
    """Runs the command line and returns its exit code. Bad input gives one line; so do errors of the operating system (a folder
    that can't be written, a name that is too long) that no command handles itself."""
    from hil.build.firmware import BuildError

    with warnings.catch_warnings():
        report_input_warnings(lambda text: _print_error(text, "yellow"))
        try:
            exit_code = app(prog_name=app.info.name, standalone_mode=False) or 0
        except (InputError, StepError) as fault:
            return _refused(_one_line(str(fault)))
        except BuildError as fault:
            return _refused(str(fault))  # and the compiler's own lines
        except OSError as fault:
            return _refused(_one_line(f"{fault.filename}: {fault.strerror}" if fault.filename else str(fault)))
        except typer.TyperException as fault:
            text = _usage(fault)
            return _refused(_one_line(text)) if text else 2  # no text: the help has been shown
        except (KeyboardInterrupt, typer.Abort):  # Abort: at a prompt
            exit_code = STOPPED
    if exit_code == STOPPED:  # as the framework also returns for Ctrl-C
        _print_error("stopped", "red")
    return exit_code


def main() -> NoReturn:
    """The command line in this process; `tinylight.entry` handles Ctrl-C before and after the command."""
    sys.exit(run())


def _refused(text: str) -> int:
    _print_error(text, "red")
    return 2


def _usage(fault: typer.TyperException) -> str:
    """What is wrong with the options and arguments themselves, in place of the framework's box of several lines."""
    context: Any = getattr(fault, "ctx", None)
    option = getattr(fault, "option_name", None)
    see = f"; see {context.command_path} --help" if context is not None else ""
    if option is not None and hasattr(fault, "possibilities"):
        known = [*context.help_option_names]
        known += [name for parameter in context.command.params for name in (*parameter.opts, *parameter.secondary_opts)]
        return f"{option}: unknown option{did_you_mean(option, known) or see}"
    text = fault.format_message().rstrip(".")
    return text and text + see


def _one_line(text: str) -> str:
    """Line ends, and what a terminal can't show, as Python writes them in a string."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _print_error(text: str, style: str) -> None:
    errors.print(f"tinylight: {text}", style=style, markup=False, highlight=False)


if __name__ == "__main__":
    main()
