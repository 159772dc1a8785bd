"""What an actuated controller feels of the chip's loops: without faults all that there is, with faults less."""

from __future__ import annotations

from hil.light.felt_loops import FeltLoops
from hil.loop.detector_faults import DetectorFaultSpec
from streetflow.control.controllers import run
from streetflow.control.environment import Environment
from streetflow.control.vehicle_actuated import VehicleActuated


def travel_time_s(controller: VehicleActuated) -> float:
    environment = Environment(
        "crossing", 0, features=controller.features, clearance="computed", decision_interval_s=1, horizon_s=900
    )
    run(environment, controller)
    return environment.average_travel_time_s()


def felt(faults: str | None) -> VehicleActuated:
    spec = None if faults is None else DetectorFaultSpec.parse(faults)

    def sensors(environment: Environment) -> FeltLoops:
        (crossing,) = environment.intersections
        return FeltLoops(environment, [*crossing.in_lanes, *crossing.out_lanes], spec)

    return VehicleActuated(sensors=sensors)


def test_sound_loops_tell_what_there_is() -> None:
    assert travel_time_s(felt(None)) == travel_time_s(VehicleActuated())


def test_dead_loops_leave_everybody_unseen() -> None:
    """The light rests in its first phase."""
    assert travel_time_s(felt("dead:100%")) > 1.5 * travel_time_s(felt(None))
