"""Learning curves of several trainings in one picture: mean travel time by episode, with a 95 % band. Needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from model.report.bootstrap import Interval, mean_interval
from model.train.log import ReplicaLog
from streetflow.errors import InputError
from streetflow.files import written_aside

TIME = "average_travel_time_s"


def learning_curve(replicas: Sequence[ReplicaLog]) -> list[Interval]:
    """By episode: the mean over the seeds that have a number there, and its 95 % interval; NaN where none has."""
    columns = [each.columns[TIME] for each in replicas]
    by_episode = [[value for value in values if math.isfinite(value)] for values in zip(*columns, strict=True)]
    return [mean_interval(values) if values else Interval(math.nan, math.nan, math.nan) for values in by_episode]


def require_alike(logs: Mapping[Path, Sequence[ReplicaLog]]) -> None:
    """InputError for a log with other episodes than the first: a mean over both would mix stages."""
    (first, own), *others = ((file, _episodes(replicas)) for file, replicas in logs.items())
    for file, episodes in others:
        if episodes != own:
            described = "{1} episodes, {0} of them of the search".format
            fault = f"has {described(*episodes)}, but {first} has {described(*own)}: --apart draws a curve for each log"
            raise InputError(file, "", fault)


def _episodes(replicas: Sequence[ReplicaLog]) -> tuple[int, int]:
    return replicas[0].searched, len(replicas[0].columns[TIME])


def plot_learning_curves(groups: Mapping[str, Sequence[ReplicaLog]], file: Path) -> None:
    """Writes the picture in the suffix's format.

    Args:
        groups: by label, the seeds of one curve: all with the same episodes.
        file: PNG, SVG or PDF.
    """
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter

    figure, axis = plt.subplots(figsize=(9, 5), layout="constrained")
    for number, (label, replicas) in enumerate(groups.items()):
        colour = f"C{number % 10}"
        curve = learning_curve(replicas)
        episodes = range(1, len(curve) + 1)
        if len(replicas) > 1:
            label += f", {len(replicas)} seeds"
            low, high = [each.low for each in curve], [each.high for each in curve]
            axis.fill_between(episodes, low, high, color=colour, alpha=0.25, linewidth=0)
            for each in replicas:
                axis.plot(episodes, each.columns[TIME], color=colour, linewidth=0.5, alpha=0.4)
        axis.plot(episodes, [each.mean for each in curve], color=colour, linewidth=1.8, label=label)
        searched = replicas[0].searched
        if 0 < searched < len(curve):
            axis.axvline(searched + 0.5, color=colour, linestyle=":", linewidth=1)
    several = any(len(replicas) > 1 for replicas in groups.values())
    title = "mean and its 95 % interval; thin: each seed" if several else "one seed each"
    axis.set(yscale="log", xlabel="episode (dotted: the search ends)", ylabel="average travel time, s", title=title)
    for which in (axis.yaxis.set_major_formatter, axis.yaxis.set_minor_formatter):
        which(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False)
    plt.rcParams["svg.hashsalt"] = "tinylight"
    with written_aside(file) as aside:
        figure.savefig(aside, format=file.suffix[1:], dpi=120, metadata={"Date": None} if file.suffix == ".svg" else None)
    plt.close(figure)
