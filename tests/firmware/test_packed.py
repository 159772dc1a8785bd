"""Packed values on the chip and on the host build: what the Python codec takes they take alike, and refuse what it refuses."""

import random

import pytest

from hil.boards import open_board
from hil.build.firmware import Target, build_firmware
from hil.loop.asking import Asker
from hil.wire.link import Link
from hil.wire.protocol import (
    DecideRequest,
    FrameError,
    MessageType,
    decode_decide,
    decode_decide_reply,
    encode_decide,
    logits_checksum,
)
from model import pretrained_policy
from model.policy.file import load_policy
from model.policy.integer import IntegerPolicy

pytestmark = pytest.mark.hil

FILE = pretrained_policy("crossing")
(PART,) = load_policy(FILE).intersections
LONGEST = max(55, 4 + 2 * PART.n_inputs)


def payloads(count: int) -> list[bytes]:
    """Sound ones, and ones that are cut, lengthened or changed in a byte."""
    rng, found = random.Random(5), list[bytes]()
    while len(found) < count:
        greatest = rng.choice([14, 16, 300, 32_767])
        values = [rng.randint(0, rng.choice([14, greatest])) for _ in range(PART.n_inputs)]
        payload = bytearray(encode_decide(DecideRequest(values, packed=True)))
        damage = rng.random()
        if damage < 0.3:
            del payload[-rng.randint(1, 3) :]
        elif damage < 0.5:
            payload += rng.randbytes(rng.randint(1, 3))
        elif damage < 0.8:
            payload[rng.randrange(2, len(payload))] = rng.randrange(256)
        if len(payload) <= LONGEST:
            found.append(bytes(payload))
    return found


@pytest.mark.parametrize(("board", "target", "count"), [("simavr", "uno_system", 200), ("host", "native", 40)])
def test_chip_and_host_take_what_the_codec_takes(board: str, target: Target, count: int) -> None:
    firmware = build_firmware(FILE, target=target)
    with open_board(board, firmware, f_cpu_hz=firmware.f_cpu_hz, baud=firmware.baud) as opened:
        link = Link(opened, budget_s=30.0)
        link.hello()
        asker, decider, taken = Asker(link, 0), IntegerPolicy(PART), 0
        for payload in payloads(count):
            answer = asker.ask(asker.frame(MessageType.DECIDE, payload))
            try:
                values = list(decode_decide(payload).values)
            except FrameError:
                assert answer.type == MessageType.ERROR, payload.hex()
                continue
            assert answer.type != MessageType.ERROR, payload.hex()
            assert decode_decide_reply(answer.payload).logits_crc == logits_checksum(decider.logits(values).tolist())
            taken += 1
        assert 0.2 * count < taken < 0.8 * count
