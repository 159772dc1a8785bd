"""`tinylight train`: from traffic to a policy file."""

import ast
import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streetflow.errors import InputError, fields_from
from streetflow.near import or_else
from tinylight.commands.jobs import require_place
from tinylight.commands.options import ClusterOption, JsonOption, ProcessesOption, require_alone
from tinylight.commands.train_planned import train_by_planning
from tinylight.commands.train_result import show_policy
from tinylight.commands.train_sweep import train_on_cluster, train_sweep
from tinylight.console import progress_bar, require_writable, say

if TYPE_CHECKING:
    from streetflow.networks.catalogue import Network

DEVICES = ("cpu", "cuda")
DQN, PLANNED = METHODS = ("dqn", "planned")
PLANNED_OPTIONS = (
    *("network", "out", "model", "method", "flow", "seed", "features", "clearance", "kept_features", "max_parameters"),
    *("share", "settings", "log", "tensorboard", "json_file", "cluster"),
)
LOCAL_OPTIONS = ("log", "tensorboard", "device", "threads", "model")
BASELINE_OPTIONS = ("network", "out", "model", "flow", "seed", "clearance")
TINYLIGHT = "TinyLight"


def train(
    context: typer.Context,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Policy file to write; with --sweep a folder.")],
    network: Annotated[
        str | None,
        typer.Option(
            "--network",
            metavar="NAME",
            help="Road network, by a name that `tinylight networks` lists. Needed without --sweep.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="TinyLight, or a baseline of the paper: EcoLight, CoLight, FRAP, MPLight, TLRP. A baseline takes --flow, "
            "--seed and --clearance, and FILE is its weights (npz).",
        ),
    ] = TINYLIGHT,
    method: Annotated[
        str,
        typer.Option(
            metavar="dqn|planned",
            help="How TinyLight learns: dqn is the paper's Q-learning; planned learns from a planner that plays all actions "
            "on the exact engine: better, and faster. It takes --flow, --seed, --features, --clearance, --kept-features, "
            "--max-parameters, --share, --log, --tensorboard and --set.",
        ),
    ] = DQN,
    flow: Annotated[int, typer.Option(metavar="K", min=0, help="Demand to train on: flow_K.json.")] = 0,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="Seed of all randomness: same seed, same file.")] = 0,
    replicas: Annotated[
        int,
        typer.Option(
            metavar="R",
            min=1,
            help="Train the seeds S to S+R-1 side by side and keep the one that does best on the training flow.",
        ),
    ] = 1,
    features: Annotated[
        str | None,
        typer.Option(
            metavar="PRESET|NAMES",
            help="Features to search: all (37), release (11), deployable (13: loop detectors and a clock), or names separated "
            "by commas. Default: release; with --method planned all.",
            show_default=False,
        ),
    ] = None,
    clearance: Annotated[
        str,
        typer.Option(
            "--clearance", metavar="hold|yellow|all_red|computed|shell", help="What the light shows between two phases."
        ),
    ] = "hold",
    search_episodes: Annotated[int, typer.Option(metavar="N", help="Episodes with the super-graph.")] = 64,
    refine_episodes: Annotated[int, typer.Option(metavar="N", help="Episodes with the sub-graph.")] = 128,
    max_parameters: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Largest sub-graph of an intersection, in weights and biases. Default: any; with --method planned 1001.",
            show_default=False,
        ),
    ] = None,
    kept_features: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Features that the sub-graph keeps. Default: 2; with --method planned 3.",
            show_default=False,
        ),
    ] = None,
    kept_episodes: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Also try the weights after the N best refinement episodes; the best integers on the training flow stay.",
        ),
    ] = 0,
    also_flows: Annotated[
        str,
        typer.Option(metavar="K,L-M", help="Flows to train on in turn with flow K; the network's others are held out."),
    ] = "",
    share: Annotated[bool, typer.Option("--share", help="One network for all intersections, which must be alike.")] = False,
    double_q: Annotated[bool, typer.Option("--double-q", help="Double Q-learning.")] = False,
    updates_per_decision: Annotated[int, typer.Option(metavar="N", help="Minibatches learnt per decision.")] = 1,
    halve_every: Annotated[int, typer.Option(metavar="N", help="Refinement episodes until the learning rate halves.")] = 10,
    rounded_episodes: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="The refinement's last N episodes act and learn through the chip's rounding.",
        ),
    ] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other field of TrainingConfig (model/search/config.py), e.g. gamma=0.95; with --method planned of "
            "PlanConfig (model/planning/settings.py), e.g. rounds=8.",
        ),
    ] = None,
    threads: Annotated[int, typer.Option(metavar="N", min=1, help="Threads; the result doesn't depend on it.")] = 2,
    device: Annotated[str, typer.Option(metavar="cpu|cuda", help="Where the networks train.")] = "cpu",
    max_cycles: Annotated[
        int | None,
        typer.Option(metavar="N", help="Most cycles of a decision, as predicted by the chip's fitted model."),
    ] = None,
    max_flash_bytes: Annotated[
        int | None, typer.Option(metavar="N", help="Largest firmware with one intersection, as predicted by the model.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option(metavar="CSV", help="Write loss, entropies and travel time of every episode here.")
    ] = None,
    tensorboard: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write the same for TensorBoard, while it trains: a folder for each seed."),
    ] = None,
    json_file: JsonOption = None,
    sweep: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Train all points of a grid, or points drawn at random, over settings, networks and seeds, as a TOML or JSON "
            "file says; with --out, --processes and --cluster alone.",
        ),
    ] = None,
    processes: ProcessesOption = None,
    cluster: ClusterOption = None,
) -> None:
    """Train a policy: search the super-graph, prune it to a few features and one component a layer, refine, quantise.

    The defaults are the paper's; --method planned is better and faster. Every 16 episodes, or every round of planning, it
    writes FILE.checkpoint: stopped later, the same command goes on from there and ends with the same policy as without the
    stop.
    """
    try:
        import torch
    except ImportError as fault:
        raise InputError("tinylight train", "", "needs PyTorch: pip install 'tinylight-hil[train]'") from fault
    from model.planning.settings import PlanConfig
    from model.search.config import KEPT_FEATURES, TrainingConfig
    from model.train.events import EventLog
    from model.train.log import write_log
    from model.train.search_and_refine import EpisodeRow, Execution, TrainingProgress
    from model.train.train_policy import PolicySettings, searched_features, train_policy
    from streetflow.control.clearance import require_clearance
    from streetflow.control.features import feature_list, resolve_features
    from streetflow.networks.catalogue import find_network, parse_flows, require_flow_list

    if sweep is not None:
        require_alone(context, "sweep", "out", "processes", "cluster")
        train_sweep(sweep, out, processes, cluster)
        return
    if processes is not None:
        raise InputError("--processes", "", "is for the jobs of --sweep; a single training takes --threads")
    if network is None:
        raise InputError("--network", "", "is missing; see tinylight train --help")
    if cluster is not None:
        _require_options(
            context, set(context.params) - {*LOCAL_OPTIONS}, "a node trains with --cluster, which doesn't take this"
        )
        require_place(None, cluster)
    if device not in DEVICES:
        raise InputError("--device", "", f"unknown device {device!r}{or_else(device, DEVICES)}")
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device", "", "PyTorch finds no CUDA device here")
    if method not in METHODS:
        raise InputError("--method", "", f"unknown method {method!r}{or_else(method, METHODS)}")
    if model != TINYLIGHT:
        _require_baseline(model, context)
    require_clearance(clearance)
    if method == PLANNED:
        _require_options(context, PLANNED_OPTIONS, "--method planned doesn't take this")
        sizes = {"kept_features": kept_features, "max_parameters": max_parameters}
        given: dict[str, Any] = {name: size for name, size in sizes.items() if size is not None} | {"share": share}
        given |= _changes(settings or [], PlanConfig)
        if cluster is not None:
            own = {"network": network, "flow": flow, "seed": seed, "method": method, "clearance": clearance}
            own |= {"features": features} if features is not None else {}
            train_on_cluster(own | given, out, cluster, json_file)
            return
        logs = {"log": log, "tensorboard": tensorboard, "json_file": json_file}
        train_by_planning(network, flow, seed, out, features=features, clearance=clearance, config=given, **logs)
        return
    features, kept_features = features or "release", KEPT_FEATURES if kept_features is None else kept_features
    resolve_features(feature_list(features))
    if also_flows:
        require_flow_list(also_flows, "also_flows")
    changes = _changes(settings or [], TrainingConfig)
    options: dict[str, Any] = dict(
        search_episodes=search_episodes,
        refine_episodes=refine_episodes,
        max_parameters=max_parameters,
        max_cycles=max_cycles,
        max_flash_bytes=max_flash_bytes,
        kept_features=kept_features,
        kept_episodes=kept_episodes,
        share=share,
        double_q=double_q,
        updates_per_decision=updates_per_decision,
        halve_every=halve_every,
        rounded_episodes=rounded_episodes,
    )

    def source(field: str) -> tuple[str, str] | None:
        return (f"--set: {field}", "") if field in changes else None

    with fields_from(source):
        config = TrainingConfig(**(options | changes))
    checkpoint = out.with_name(f"{out.name}.checkpoint")
    require_writable(out, checkpoint, log, json_file)
    events = EventLog(tensorboard)
    found = find_network(network)
    found.flow_file(flow)
    if model != TINYLIGHT:
        _train_baseline(model, found, flow, seed, clearance, out)
        return
    if also_flows and "also_flows" not in changes:
        config = replace(config, also_flows=tuple(parse_flows(also_flows, len(found.flow_files), "also_flows")))
    if cluster is not None:
        own = {
            "network": network,
            "flow": flow,
            "seed": seed,
            "features": features,
            "clearance": clearance,
            "replicas": replicas,
        }
        train_on_cluster(own | dataclasses.asdict(config), out, cluster, json_file)
        return
    resume_from = checkpoint if checkpoint.is_file() else None
    rows: list[EpisodeRow] = []

    with fields_from(source), progress_bar() as bar:
        task = bar.add_task(f"training on {network}, flow {flow}", total=search_episodes + refine_episodes)

        def on_progress(state: TrainingProgress) -> None:
            if resume_from is not None and not rows:
                say(f"resuming from {checkpoint}", style="dim")
            rows.extend(state.rows)
            events.add(state.rows)
            times = [row.average_travel_time_s for row in state.rows]
            label = f"{state.rows[0].stage}: travel time {min(times):.1f} s"
            bar.update(task, description=label, completed=state.done_episodes, total=state.total_episodes)

        policy = train_policy(
            found,
            flow,
            seed,
            out,
            PolicySettings(replicas, features, clearance, config),
            execution=Execution(checkpoint, resume_from=resume_from, threads=threads, device=device),
            progress=on_progress,
        )
    events.close()
    checkpoint.unlink(missing_ok=True)
    show_policy(policy, out, json_file)
    if log is not None:
        write_log(rows, log, searched_features(found, flow, features, config), config.layer2_dims, config.layer3_dims)


def _changes(settings: Sequence[str], config: type) -> dict[str, Any]:
    """The values of all `--set NAME=VALUE`, fields of a config; InputError for an unknown name or an invalid value."""
    known = [field.name for field in dataclasses.fields(config)]
    changes = {}
    for each in settings:
        name, equals, text = each.partition("=")
        if name not in known:
            raise InputError("--set", each[:60], f"must be NAME=VALUE with a name of the settings{or_else(name, known)}")
        if not equals:
            raise InputError("--set", name, f"needs a value: {name}=VALUE")
        try:
            changes[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            raise InputError("--set", name, f"{text[:60]!r} is neither a number nor a tuple of numbers") from None
    return changes


def _require_baseline(model: str, context: typer.Context) -> None:
    """InputError for an unknown model, and for an option that would have no effect."""
    from model.baselines.registry import require_baseline

    require_baseline(model)
    _require_options(context, BASELINE_OPTIONS, "a baseline has the paper's settings and doesn't take this")


def _require_options(context: typer.Context, allowed: Collection[str], fault: str) -> None:
    """InputError for an option on the command line that isn't among the allowed ones."""
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        given = source is not None and source.name == "COMMANDLINE"
        if given and option.name not in allowed:
            raise InputError(option.opts[0], "", fault)


def _train_baseline(model: str, network: "Network", flow: int, seed: int, clearance: str, out: Path) -> None:
    from model.baselines.train_baseline import train_baseline_files
    from model.baselines.training import BaselineProgress
    from model.evaluate import evaluate

    with progress_bar() as bar:
        task = bar.add_task(f"training {model} on {network.name}, flow {flow}", total=None)

        def on_progress(state: BaselineProgress) -> None:
            label = f"{model}: travel time {state.average_travel_times_s[0]:.1f} s"
            bar.update(task, description=label, completed=state.done_episodes, total=state.total_episodes)

        (content,) = train_baseline_files(model, network, [(flow, seed, out)], clearance=clearance, progress=on_progress)
    (row,) = evaluate(network, out, [flow])
    parameters = sum(array.size for name, array in content.arrays.items() if array.dtype.kind == "f")
    say(f"{out}: {model}, weights {content.sha256[:12]}, {parameters} numbers")
    say(f"flow {flow}: travel time {row.average_travel_time_s:.3f} s, throughput {row.throughput_veh_per_min:.3f} veh/min")
