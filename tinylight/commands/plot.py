"""`tinylight plot`: the picture of a training."""

from pathlib import Path
from typing import Annotated

import typer

from streetflow.errors import InputError
from tinylight.console import require_writable, say


def plot(
    log: Annotated[Path, typer.Argument(metavar="FILE", help="Log that `tinylight train --log FILE` wrote.")],
    out: Annotated[
        Path | None, typer.Option(metavar="PICTURE", help="PNG, SVG or PDF, by its suffix. Default: FILE with suffix .png.")
    ] = None,
) -> None:
    """Draw a training: travel time, loss, entropies and alphas, episode by episode."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as fault:
        raise InputError("tinylight plot", "", "needs matplotlib: pip install 'tinylight-hil[plot]'") from fault
    from model.train.log import read_log
    from model.train.plot import plot_training

    out = log.with_suffix(".png") if out is None else out
    if out.suffix not in (".png", ".svg", ".pdf"):
        raise InputError("--out", "", f"must end in .png, .svg or .pdf, is {out.name}")
    require_writable(out)
    replicas = read_log(log)
    plot_training(replicas, out, log.stem)
    for each in replicas:
        for name, count in each.gaps.items():
            say(f"{log}: seed {each.train_seed} has no {name} in {count} episodes: gaps in the curve", style="yellow")
    say(f"{out}: {len(replicas)} replicas, {len(replicas[0].columns['episode'])} episodes")
