"""One run with lamps as it goes along: what was built, what happened, what it is measured against."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hil.build.firmware import Firmware
from hil.build.footprint import Footprint
from hil.light.closed_loop import LightResult
from hil.light.crossing import Crossing
from hil.loop.closed_loop import LoopResult
from hil.loop.job_spec import Job
from hil.wire.link import Link
from model.policy.file import Policy
from streetflow.page.recorder import Recorder


@dataclass
class LightRun:
    """The job, what was built for each crossing, and what came of it. ``fault``: of a handshake, or of a start."""

    job: Job
    policy: Policy
    crossings: list[Crossing] = field(default_factory=list)
    firmwares: list[Firmware] = field(default_factory=list)
    recorder: Recorder | None = None
    documents: list[dict[str, Any]] = field(default_factory=list)
    footprint: Footprint | None = None
    links: list[Link] = field(default_factory=list)
    fault: str | None = None
    result: LightResult = field(default_factory=LightResult)
    reference: LoopResult = field(default_factory=LoopResult)
    """The same policy in ``answer``, with true counts, the same clearances and the same longest green and red."""
    unlimited: LoopResult | None = None
    """The same without a longest green and red, where the traffic is judged."""
