"""`tinylight quantise`: a network that was trained elsewhere, as a policy file."""

from pathlib import Path
from typing import Annotated

import typer

from tinylight.commands.options import NetworkOption
from tinylight.console import require_writable, say


def quantise(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="File of stable-baselines3 (zip), PyTorch (a Sequential or a state dict) or ONNX: linear layers with ReLUs, "
            "one or two of them hidden.",
        ),
    ],
    network: NetworkOption,
    features: Annotated[
        str,
        typer.Option(metavar="NAMES", help="What its inputs are: a preset, or features separated by commas, in their order."),
    ],
    out: Annotated[Path, typer.Option(metavar="POLICY.json", help="Policy file to write.")],
    flow: Annotated[
        int, typer.Option(metavar="K", help="Traffic that the integers are fitted to, with harder variations of it.")
    ] = 0,
    clearance: Annotated[
        str, typer.Option("--clearance", metavar="hold|yellow|all_red", help="What the light shows between two phases.")
    ] = "hold",
) -> None:
    """Make a policy file for the chip of a network that was trained elsewhere, and run it in float and in integers."""
    from model.policy.file import save_policy
    from model.train.quantise_network import quantise_network
    from streetflow.control.clearance import require_clearance
    from streetflow.control.features import feature_list, resolve_features
    from streetflow.networks.catalogue import find_network

    require_clearance(clearance)
    require_writable(out)
    resolve_features(feature_list(features))
    policy = quantise_network(model, find_network(network), features, flow=flow, clearance=clearance, out=out.name)
    save_policy(policy, out)
    (run,) = policy.measured
    in_float, in_integers = run.float_average_travel_time_s, run.integer_average_travel_time_s
    part, settings = policy.intersections[0], policy.provenance.settings
    say(
        f"written: {out} ({part.n_inputs} inputs, hidden {part.hidden[0]} and {part.hidden[1]}, {part.n_parameters} parameters)"
    )
    say(f"average travel time on flow {flow}: float {in_float:.2f} s, integers {in_integers:.2f} s")
    say(f"same action as float in {settings['calibration_agreement']:.1%} of {settings['calibration_states']} states")
