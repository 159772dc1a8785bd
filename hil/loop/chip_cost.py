"""What a policy costs on the chip, measured: cycles of a decision on the emulator, bytes from the linker map."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hil.loop.job import Job, OnProgress, run_job
from model.policy.file import Policy, load_policy
from model.report.cost import TinyLightShape, tinylight_cost
from streetflow.errors import InputError


@dataclass(frozen=True)
class ChipCost:
    """One policy: counted per decision (mean over its intersections), measured on simavr over one run."""

    policy: str  # file name
    network: str
    flow: int  # trained on this one
    intersections: int
    parameters: int  # of all intersections
    flops: float  # of one decision
    cycles_p50: float  # scaling, inference and argmax of one decision
    cycles_max: float
    flash_bytes: int  # of the whole firmware
    static_ram_bytes: int
    ram_bytes: int  # with the stack

    @property
    def name(self) -> str:
        """A label for the policy: files of different networks may have the same name."""
        return f"{self.network} flow {self.flow}"

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def measure_policy(policy_file: Path, flow: int = 0, progress: OnProgress | None = None) -> ChipCost:
    """Builds the firmware and runs it through one flow of the policy's network; InputError if the run fails its verdict."""
    policy = load_policy(policy_file)
    verdict = run_job(Job.named(policy.network, flow, policy_file), progress=progress)
    if not verdict.passed:
        failed = ", ".join(check.name for check in verdict.checks if check.outcome == "fail")
        raise InputError(policy_file, "", f"not measured: the run on the emulated chip failed ({failed})")
    figures: dict[str, Any] = dict(verdict.figures)
    footprint, cycles = figures["footprint"], figures["latency"]["compute_cycles"]
    counted = counted_costs(policy)
    return ChipCost(
        policy=policy_file.name,
        network=policy.network,
        flow=policy.provenance.flow,
        intersections=len(counted),
        parameters=sum(parameters for parameters, _ in counted),
        flops=sum(flops for _, flops in counted) / len(counted),
        cycles_p50=cycles["p50"],
        cycles_max=cycles["max"],
        flash_bytes=footprint["flash_bytes"],
        static_ram_bytes=footprint["static_ram_bytes"],
        ram_bytes=footprint["ram_bytes"],
    )


def counted_costs(policy: Policy) -> list[tuple[int, int]]:
    """(parameters, FLOPs) of each intersection's sub-graph, by the paper's formulas."""
    counted = []
    for part in policy.intersections:
        shape = TinyLightShape(tuple(feature.width for feature in part.features), part.hidden[0], part.hidden[1])
        cost = tinylight_cost(shape, len(part.phases))
        counted.append((cost.parameters, cost.flops))
    return counted
