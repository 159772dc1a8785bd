"""The figures of the paper's Table 1, for comparison with ours."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from streetflow.control.measures import Summary

PAPER_FILE = Path(__file__).resolve().with_name("paper_table.json")
PAPER_NETWORKS = ("Hangzhou1", "Hangzhou2", "Hangzhou3", "Atlanta", "Jinan", "LosAngeles")
PAPER_RUNS = 10


@dataclass(frozen=True)
class PaperCell:
    """One model on one network: mean and deviation over ten runs, rounded to the hundredth."""

    travel_time_s: Summary
    throughput_veh_per_min: Summary


def paper_cell(network: str, model: str) -> PaperCell | None:
    """None for a dash, and for a network or model that is not in the paper."""
    return _cells().get((network, model))


def paper_models(network: str) -> dict[str, PaperCell]:
    """The network's column, model by model."""
    return {model: cell for (name, model), cell in _cells().items() if name == network}


@cache
def _cells() -> dict[tuple[str, str], PaperCell]:
    content = json.loads(PAPER_FILE.read_text(encoding="utf-8"))
    return {
        (network, model): PaperCell(Summary(time, time_sd, PAPER_RUNS), Summary(rate, rate_sd, PAPER_RUNS))
        for network, models in content["networks"].items()
        for model, (time, time_sd, rate, rate_sd) in models.items()
    }
