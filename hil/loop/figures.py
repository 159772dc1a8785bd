"""What stands beside a verdict: the figures behind its checks, and what it applies to."""

from hil.build.footprint import Footprint
from hil.build.project import SOURCES
from hil.build.provenance import firmware_commit
from hil.loop.closed_loop import LoopResult
from hil.loop.job_spec import Job
from hil.loop.verdict import latency_figures, ram_bytes
from model.policy.file import Policy
from model.policy.provenance import file_sha256, tool_version


def figures_of(
    job: Job,
    result: LoopResult | None,
    reference: LoopResult | None,
    footprint: Footprint | None,
    stack_bytes: int | None,
) -> dict[str, object]:
    """Footprint, latency and traffic, each where it is known. `footprint` is that of the firmware judged."""
    figures: dict[str, object] = {}
    if footprint is not None:
        figures["footprint"] = {
            "flash_bytes": footprint.flash_bytes,
            "static_ram_bytes": footprint.static_ram_bytes,
            "ram_bytes": ram_bytes(footprint, stack_bytes),
            "stack_bytes": stack_bytes,
            "stack_bound_bytes": footprint.stack.total_bytes if footprint.stack else None,
        }
    if result is not None and reference is not None:
        figures["latency"] = latency_figures(result, job.f_cpu_hz, compute_measured=job.target != "native")
        figures["traffic"] = {
            "average_travel_time_s": result.average_travel_time_s,
            "throughput_veh_per_min": result.throughput_veh_per_min,
            "reference_average_travel_time_s": reference.average_travel_time_s,
            "decisions": len(result.records),
            "unanswered": len(result.unanswered),
            "unequal": len(result.unequal),
        }
    return figures


def provenance_of(job: Job, policy: Policy, seed: int, board: str, kernel: str) -> dict[str, object]:
    """What was run, on what, with which files. `seed`: of the traffic; `board`: its description."""
    return {
        "tool_version": tool_version(),
        "board": board,
        "f_cpu_hz": job.f_cpu_hz,
        "baud": job.baud,
        "kernel": kernel,
        "logits": job.logits,
        "boards": job.boards,
        "firmware_commit": firmware_commit(SOURCES),
        **job.decided_by,
        "policy_sha256": policy.sha256,
        "network": job.network.name,
        "roadnet_sha256": file_sha256(job.network.roadnet_file),
        "flow": job.flow,
        "flow_sha256": file_sha256(job.network.flow_file(job.flow)),
        "seed": seed,
        "engine": job.engine,
        "clearance": job.clearance or policy.clearance,
    }
