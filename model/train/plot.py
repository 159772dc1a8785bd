"""The picture of a training: travel time, loss, entropies and alphas, episode by episode. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from model.train.log import ALPHA_COLUMNS, ReplicaLog
from streetflow.files import written_aside

NAMED_ALPHAS = 5  # of the features; the others are grey
_TITLES = ("features", "layer 2, by width", "layer 3, by width")


def plot_training(replicas: Sequence[ReplicaLog], file: Path, title: str) -> None:
    """Writes the picture in the suffix's format: travel time, loss and entropies of all replicas; alphas of the first."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, NullFormatter

    figure, axes = plt.subplots(2, 3, figsize=(13, 7), layout="constrained")
    figure.suptitle(f"{title} (alphas: seed {replicas[0].train_seed})")
    time, loss, entropy = axes[0]
    searched = replicas[0].searched
    for each in replicas:
        time.plot(each.columns["average_travel_time_s"], linewidth=1, label=f"seed {each.train_seed}")
        loss.plot(each.columns["loss"], linewidth=1)
    for axis, name in ((time, "average travel time, s"), (loss, "loss: squared error of Q")):
        axis.set(yscale="log", title=name)
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.axvline(searched - 0.5, color="0.7", linestyle=":")
    time.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    loss.yaxis.set_minor_formatter(NullFormatter())
    time.annotate("refinement", (searched, 0.97), xycoords=("data", "axes fraction"), fontsize=8, color="0.4", va="top")
    if len(replicas) <= 10:
        time.legend(fontsize=7)
    for layer, style in (("features", "-"), ("layer2", "--"), ("layer3", ":")):
        mean = np.mean([each.columns[f"entropy_{layer}"][:searched] for each in replicas], axis=0)
        entropy.plot(mean, style, color="black", label=layer)
    entropy.set(title="entropy of the alphas (mean over seeds)", ylim=(0, None))
    entropy.legend(fontsize=8)
    for axis, prefix, name in zip(axes[1], ALPHA_COLUMNS, _TITLES, strict=True):
        _plot_alphas(axis, replicas[0], prefix)
        axis.set(title=f"alphas of {name}", ylim=(0, None))
    for axis in axes.flat:
        axis.set_xlabel("episode")
    plt.rcParams["svg.hashsalt"] = "tinylight"
    with written_aside(file) as aside:
        date = {"Date": None} if file.suffix == ".svg" else None
        figure.savefig(aside, format=file.suffix[1:] or None, metadata=date)
    plt.close(figure)


def _plot_alphas(axis: Any, log: ReplicaLog, prefix: str) -> None:
    curves = {name.partition(":")[2]: values for name, values in log.columns.items() if name.startswith(f"{prefix}:")}
    strongest = sorted(curves, key=lambda name: -curves[name][log.searched - 1] if log.searched else 0.0)
    for rank, name in enumerate(strongest):
        named = rank < NAMED_ALPHAS
        style: dict[str, Any] = {"label": name} if named else {"color": "0.8", "zorder": 0}
        axis.plot(curves[name][: log.searched], linewidth=1.5 if named else 0.8, **style)
    if strongest:
        axis.legend(fontsize=7)
