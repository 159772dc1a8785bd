"""Yellow, red clearance and green times of a movement from speed and way, by the usual rules of traffic engineering.

The rules are those that ITE and the MUTCD give in public: yellow ``t + v / (2 a)`` (perception, then braking), red clearance
``(w + L) / v`` (a vehicle that passes the stop line last leaves the crossing), walk 7 s and a pedestrian's way at 1.07 m/s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from streetflow.errors import FieldError


@dataclass(frozen=True)
class SignalRules:
    """What the times are computed from. Lengths in m, speeds in m/s, accelerations in m/s2, times in s.

    FieldError for values that make no times.
    """

    perception_s: float = 1.0
    deceleration_mps2: float = 3.05
    least_yellow_s: float = 3.0
    most_yellow_s: float = 6.0
    vehicle_length_m: float = 6.1
    turning_speed_mps: float = 8.3333
    """As the engine drives turns."""
    most_red_clearance_s: float = 6.0
    start_up_s: float = 2.0
    acceleration_mps2: float = 2.0
    least_min_green_s: float = 5.0
    most_min_green_s: float = 10.0
    max_green_s: float = 60.0
    """Longest green while somebody in conflict with it waits."""
    longest_red_s: float = 120.0
    """Whoever has waited so long is served next."""
    walk_s: float = 7.0
    walking_speed_mps: float = 1.07

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (math.isfinite(value) and value > 0):
                raise FieldError(field.name, f"must be above 0, is {value:g}")
        for least, most in (("least_yellow_s", "most_yellow_s"), ("least_min_green_s", "most_min_green_s")):
            if getattr(self, least) > getattr(self, most):
                raise FieldError(least, f"must be at most {most}, {getattr(self, most):g}, is {getattr(self, least):g}")

    def yellow_s(self, speed_mps: float) -> float:
        """For an approach with this speed limit."""
        needed_s = self.perception_s + speed_mps / (2 * self.deceleration_mps2)
        return min(max(needed_s, self.least_yellow_s), self.most_yellow_s)

    def red_clearance_s(self, way_m: float, speed_mps: float) -> float:
        """For a movement whose way through the crossing is so long."""
        return min((way_m + self.vehicle_length_m) / speed_mps, self.most_red_clearance_s)

    def min_green_s(self, way_m: float, speed_mps: float) -> float:
        """Long enough for the first waiting vehicle to start and to leave the crossing, within the limits."""
        to_speed_m = speed_mps**2 / (2 * self.acceleration_mps2)
        if way_m <= to_speed_m:
            driving_s = math.sqrt(2 * way_m / self.acceleration_mps2)
        else:
            driving_s = speed_mps / self.acceleration_mps2 + (way_m - to_speed_m) / speed_mps
        return min(max(self.start_up_s + driving_s, self.least_min_green_s), self.most_min_green_s)

    def walk_and_clearance_s(self, way_m: float) -> float:
        """Walk, and the time that a pedestrian needs who starts at its very end."""
        return self.walk_s + way_m / self.walking_speed_mps


LIGHT_RULES = SignalRules(max_green_s=120.0, longest_red_s=240.0)
"""Of a chip that is the light: its policies are trained without a longest green and red, and the usual 60 and 120 s would rule
more often than they."""
