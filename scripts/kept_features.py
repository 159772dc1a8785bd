"""The picture of what the search keeps: docs/pictures/kept_features.svg, from the policies of model/pretrained.

python scripts/kept_features.py
"""

from pathlib import Path

import numpy as np

from model.policy.file import load_policy
from model.report.cost_figure import STYLE
from streetflow.control.features import FEATURES, PRESETS
from streetflow.files import written_aside

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pictures" / "kept_features.svg"
NETWORKS = ("crossing", "arterial", "Hangzhou1", "Hangzhou2", "Hangzhou3", "Atlanta", "Jinan", "LosAngeles")


def main() -> None:
    import matplotlib
    from matplotlib.figure import Figure

    policies = [load_policy(ROOT / "model" / "pretrained" / f"{network}.json") for network in NETWORKS]
    kept = [[{feature.name for feature in part.features} for part in policy.intersections] for policy in policies]
    names = [name for name in FEATURES if any(name in light for lights in kept for light in lights)]
    counts = np.array([[sum(name in light for light in lights) for lights in kept] for name in names])
    shares = counts / [len(lights) for lights in kept]
    order = np.argsort(-shares.sum(axis=1), kind="stable")  # the most kept first
    names, counts, shares = [names[row] for row in order], counts[order], shares[order]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10.6, 0.9 + 0.29 * len(names)))
        axes = figure.subplots()
        axes.imshow(shares, cmap="Blues", vmin=0, vmax=1.3, aspect="auto")
        for row, column in zip(*np.nonzero(counts), strict=True):
            text = f"{counts[row, column]} of {len(kept[column])}" if len(kept[column]) > 1 else "kept"
            axes.text(column, row, text, ha="center", va="center", color="white" if shares[row, column] > 0.6 else "black")
        searched = [preset if (preset := policy.provenance.feature_preset) in PRESETS else "counts" for policy in policies]
        titles = [f"{network}\n({which})" for network, which in zip(NETWORKS, searched, strict=True)]
        axes.set_xticks(range(len(NETWORKS)), titles)
        axes.set_yticks(range(len(names)), names)
        axes.tick_params(length=0, labeltop=True, labelbottom=False, top=False, bottom=False)
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)
        figure.tight_layout()
        with written_aside(PICTURE) as aside:
            figure.savefig(aside, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
