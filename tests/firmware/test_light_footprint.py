"""What a light that decides alone takes of the chip at an eight-phase crossing with crosswalks, and how long a scan takes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hil.build.firmware import build_firmware
from hil.build.footprint import measure
from hil.build.light_plan import light_documents
from hil.wire.protocol import MessageType, decode_stats_reply
from streetflow.networks.catalogue import list_networks
from tests.firmware.light.chip import play
from tests.firmware.light.policies import policy_of_features
from tests.firmware.light.scenes import request

FLASH_BYTES, RAM_BYTES, LATE_US = 24 * 1024, 1_228, 1_000
KEPT = ["inlane_2_pressure", "phase_2_pressure", "inter_2_current_phase"]
"""As the built-in networks' policies keep them: 28 values, loops on lanes that lead out as well."""


@pytest.mark.parametrize(("network", "phases"), [("crossing", 8), ("Hangzhou1", 6)])
def test_a_crossing_fits_with_its_stack_proven_and_its_lamps_are_on_time(network: str, phases: int, tmp_path: Path) -> None:
    if network not in [each.name for each in list_networks()]:
        pytest.skip(f"no network {network} here (TINYLIGHT_DATA)")
    document = light_documents(network)[0]
    policy = policy_of_features(document, KEPT, tmp_path)
    firmware = build_firmware(policy, mode="alone", plans=[document], extra_flags=["-Werror"])
    size = measure(firmware)
    assert size.stack is not None
    ram_bytes = size.static_ram_bytes + size.stack.total_bytes
    groups = len(document["groups"])
    draw, script = random.Random(2), ["run 1000"]  # then half of all lines turn over every few ticks
    for _ in range(300):
        script += [f"lines {draw.getrandbits(48 + groups):x}", f"run {3 + draw.randrange(5)}"]
    seen = play(firmware, 5 * groups, *script, request(MessageType.STATS, 1), "run 50")
    light = decode_stats_reply(next(frame.payload for _, frame in seen.frames if frame.type == 0x83)).light
    assert light is not None and light.ticks_late == 0
    ram = f"{size.static_ram_bytes} + {size.stack.total_bytes}"
    print(f"{network}: flash {size.flash_bytes} B, RAM {ram} B, lamps {light.lamps_late_us} µs after their tick at most")
    assert firmware.kernel == "unrolled" and len(document["phases"]) == phases
    assert size.flash_bytes <= FLASH_BYTES
    assert ram_bytes <= RAM_BYTES
    assert light.lamps_late_us <= LATE_US
