"""`tinylight plot`: the picture of a training, or of several."""

from pathlib import Path
from typing import Annotated

import typer

from streetflow.errors import InputError
from tinylight.console import require_writable, say


def plot(
    logs: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Logs that `tinylight train --log FILE` wrote."),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="PICTURE", help="PNG, SVG or PDF, by its suffix. Default: FILE with suffix .png.")
    ] = None,
    apart: Annotated[bool, typer.Option("--apart", help="Of several logs: a curve for each, not one for all.")] = False,
) -> None:
    """Draw a training: travel time, loss, entropies and alphas, episode by episode.

    Of several logs, or with --apart: learning curves, the mean travel time over the seeds with its 95 % interval.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as fault:
        raise InputError("tinylight plot", "", "needs matplotlib: pip install 'tinylight-hil[plot]'") from fault
    from model.report.curves_figure import TIME, plot_learning_curves, require_alike
    from model.train.log import CURVES, read_log
    from model.train.plot import plot_training

    named = list(dict.fromkeys(logs))
    out = named[0].with_suffix(".png") if out is None else out
    if out.suffix not in (".png", ".svg", ".pdf"):
        raise InputError("--out", "", f"must end in .png, .svg or .pdf, is {out.name}")
    if out.exists() and any(out.samefile(log) for log in named if log.exists()):
        raise InputError("--out", "", f"{out} is a log")
    require_writable(out)
    read = {log: read_log(log) for log in named}
    replicas = [each for own in read.values() for each in own]
    drawn = (TIME,) if apart or len(read) > 1 else CURVES
    if apart:
        stems = [log.stem for log in named]
        labels = {log: log.stem if stems.count(log.stem) == 1 else str(log) for log in named}
        plot_learning_curves({labels[log]: own for log, own in read.items()}, out)
    elif len(read) > 1:
        require_alike(read)
        plot_learning_curves({"mean": replicas}, out)
    else:
        plot_training(replicas, out, named[0].stem)
    for log, own in read.items():
        for each in own:
            for name in sorted(each.gaps.keys() & set(drawn)):
                gap = f"has no {name} in {each.gaps[name]} episodes: gaps in the curve"
                say(f"{log}: seed {each.train_seed} {gap}", style="yellow")
    episodes = dict.fromkeys(str(len(own[0].columns["episode"])) for own in read.values())
    say(f"{out}: {len(replicas)} replicas, {' and '.join(episodes)} episodes")
