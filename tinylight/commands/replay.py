"""`tinylight replay`: a page that plays the simulation."""

from pathlib import Path
from typing import Annotated

import typer

from streetflow.errors import InputError
from tinylight.commands.options import ClearanceOption, JsonOption, NetworkOption
from tinylight.console import progress_bar, require_writable, say


def replay(
    network: NetworkOption,
    out: Annotated[Path, typer.Option(metavar="FILE.html", help="Page to write.")],
    agent: Annotated[
        str,
        typer.Option(
            metavar="MaxQueue|MaxPressure|...|POLICYFILE|module:Class",
            help="What sets the lights: a rule, or a policy file, which decides in the chip's integers.",
        ),
    ] = "MaxPressure",
    flow: Annotated[int, typer.Option(metavar="K", min=0, help="Which demand file of the network: flow_K.json.")] = 0,
    start_s: Annotated[int, typer.Option("--start", metavar="S", min=0, help="Second at which the page begins.")] = 0,
    seconds: Annotated[
        int | None, typer.Option(metavar="S", min=1, help="How many seconds to show. Default: up to the horizon.")
    ] = None,
    clearance: ClearanceOption = None,
    json_file: JsonOption = None,
) -> None:
    """Write one self-contained HTML page that plays the traffic: roads, lights, vehicles, a time slider, speed.

    It opens in any browser and needs no server and no network.
    """
    from model.evaluate import make_controller
    from streetflow.control.clearance import require_clearance
    from streetflow.control.controllers import interval_of
    from streetflow.control.environment import Environment
    from streetflow.engine.cityflow_names import Engine
    from streetflow.networks.catalogue import find_network
    from streetflow.page.recorder import Recorder
    from streetflow.page.write import write_replay_page
    from tinylight.json_file import write_json

    if clearance is not None:
        require_clearance(clearance)
    controller, name, policy_clearance = make_controller(agent, integer=None)
    require_writable(out, json_file)
    found = find_network(network)
    environment = Environment(
        found,
        flow,
        features=controller.features,
        clearance=clearance or policy_clearance,
        decision_interval_s=interval_of(controller),
    )
    end_s = environment.horizon_s if seconds is None else min(start_s + seconds, environment.horizon_s)
    if start_s >= end_s:
        raise InputError("--start", "", f"the run ends at second {environment.horizon_s}")
    engine = environment.engine
    assert isinstance(engine, Engine)
    recorder = Recorder(engine, start_s, end_s)
    environment.engine = recorder  # forwards everything else to the engine
    observation = environment.reset()
    controller.reset(environment)
    with progress_bar() as bar:
        task = bar.add_task(f"{name} on {network}", total=end_s)
        while environment.time_s < end_s:
            observation, _, _ = environment.step(controller.act(observation))
            bar.update(task, completed=min(environment.time_s, end_s))
    recording = recorder.recording()
    write_replay_page(recording, engine.network, f"{network}, flow {flow}, {name}", out)
    megabytes = out.stat().st_size / 1e6
    say(f"{out}: {len(recording.vehicle_ids)} vehicles, seconds {start_s} to {end_s}, {megabytes:.1f} MB; open it in a browser")
    if json_file is not None:
        facts = {"file": str(out), "vehicles": len(recording.vehicle_ids), "start_s": start_s, "end_s": end_s}
        write_json(facts, json_file)
