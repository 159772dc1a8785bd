"""The firmware's C codec against tests/firmware/vectors/frames.json: alone, in the host build, and on the emulated chip.

The Python codec is held against the same file here too, so that both sides mean the same bytes.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hil.boards import Board, open_board
from hil.build.firmware import build_firmware
from hil.build.project import project_root
from hil.wire import protocol
from hil.wire.protocol import ErrorCode, Frame, MessageType, decode_error_reply, decode_frame
from tests.firmware.vectors.make_frames import FILE, document
from tests.helpers.random_policy import write_random_policy

VECTORS: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="ascii"))["frames"]
GOOD = [vector for vector in VECTORS if vector["kind"] == "good"]
BAD = [vector for vector in VECTORS if vector["kind"] == "bad"]
LIMIT_US = 200_000
INTERSECTIONS = 3
N_INPUTS = 21

CodecLines = Callable[[list[str]], list[str]]


def name_of(vector: dict[str, Any]) -> str:
    return str(vector["name"])


def test_the_file_is_what_its_script_writes() -> None:
    assert FILE.read_text(encoding="ascii") == document()
    assert len(VECTORS) >= 25 and len(GOOD) >= 10 and len(BAD) >= 10
    assert len({vector["name"] for vector in VECTORS}) == len(VECTORS)
    assert {vector["error"] for vector in BAD} == {"BAD_CRC", "BAD_VERSION", "TOO_LONG", "MALFORMED"}


@pytest.fixture(scope="module")
def codec(tmp_path_factory: pytest.TempPathFactory) -> CodecLines:
    """firmware/src/frame.c with a main of its own, as large as frames can be; stdin lines to stdout lines."""
    folder, firmware = tmp_path_factory.mktemp("codec"), project_root() / "firmware"
    (folder / "policy_dimensions.h").write_text(f"#define POLICY_MAX_PAYLOAD {protocol.MAX_PAYLOAD_BYTES}\n")
    sources = [str(Path(__file__).with_name("frame_codec.c")), *(str(firmware / "src" / name) for name in ("frame.c", "crc.c"))]
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    program = folder / "codec"
    subprocess.run(["gcc", *flags, f"-I{folder}", f"-I{firmware / 'include'}", *sources, "-o", str(program)], check=True)

    def lines(frames: list[str]) -> list[str]:
        result = subprocess.run([str(program)], input="\n".join(frames) + "\n", text=True, capture_output=True, check=True)
        return result.stdout.splitlines()

    return lines


def test_the_c_codec_takes_every_good_frame_apart_and_puts_it_together(codec: CodecLines) -> None:
    found = codec([vector["encoded_hex"] for vector in GOOD])
    for vector, line in zip(GOOD, found, strict=True):
        head = bytes([vector["version"], vector["type"], vector["sequence"], vector["intersection"]])
        assert line == f"GOOD {head.hex()}{vector['payload_hex']} {vector['encoded_hex']}00", vector["name"]


def test_the_c_codec_names_what_is_wrong_with_every_bad_frame(codec: CodecLines) -> None:
    found = codec([vector["encoded_hex"] for vector in BAD])
    assert found == [vector["error"] for vector in BAD]


def test_the_c_codec_takes_the_longest_payload(codec: CodecLines) -> None:
    for payload in (bytes(200), bytes(range(1, 201)), b"\xff" * 200):
        encoded = protocol.encode_frame(Frame(0x40, 1, 2, payload))
        assert codec([encoded[:-1].hex()]) == [f"GOOD 03400102{payload.hex()} {encoded.hex()}"]


@pytest.mark.parametrize("vector", GOOD, ids=name_of)
def test_the_python_codec_agrees_on_good_frames(vector: dict[str, Any]) -> None:
    frame = Frame(vector["type"], vector["sequence"], vector["intersection"], bytes.fromhex(vector["payload_hex"]))
    assert decode_frame(bytes.fromhex(vector["encoded_hex"])) == frame
    assert protocol.encode_frame(frame).hex() == vector["encoded_hex"] + "00"


@pytest.mark.parametrize("vector", BAD, ids=name_of)
def test_the_python_codec_agrees_on_bad_frames(vector: dict[str, Any]) -> None:
    kinds = {"BAD_CRC": protocol.BadCrc, "BAD_VERSION": protocol.BadVersion, "MALFORMED": protocol.MalformedFrame}
    encoded = bytes.fromhex(vector["encoded_hex"])
    if vector["error"] == "TOO_LONG":  # the Python side measures before it decodes
        assert len(encoded) + 1 > protocol.MAX_FRAME_BYTES
    else:
        with pytest.raises(kinds[vector["error"]]):
            decode_frame(encoded)


@pytest.fixture(scope="module", params=["host", "simavr"])
def answering(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    """A firmware of three intersections with 21 inputs each, on the host and on the emulated chip."""
    policy = tmp_path_factory.mktemp("vectors") / "policy.json"
    write_random_policy(policy, shapes=[((12, 9), (18, 20), 9)] * INTERSECTIONS)
    firmware = build_firmware(policy, target="native" if request.param == "host" else "uno_system")
    with open_board(request.param, firmware, f_cpu_hz=16_000_000, baud=115_200) as opened:
        yield opened


def ask(board: Board, encoded: bytes) -> Frame:
    """What the firmware answers to these bytes and a delimiter."""
    board.write(encoded + b"\0")
    reply = b""
    deadline_us = board.now_us() + LIMIT_US
    while not reply.endswith(b"\0") and board.now_us() < deadline_us:
        reply += board.read(deadline_us)
    assert reply.count(0) == 1, "one frame, one reply"
    return decode_frame(reply[:-1])


@pytest.mark.parametrize("vector", GOOD, ids=name_of)
def test_the_firmware_answers_every_good_frame(answering: Board, vector: dict[str, Any]) -> None:
    reply = ask(answering, bytes.fromhex(vector["encoded_hex"]))
    assert (reply.sequence, reply.intersection) == (vector["sequence"], vector["intersection"])
    kind, payload = vector["type"], bytes.fromhex(vector["payload_hex"])
    if kind in (MessageType.HELLO, MessageType.STATS):
        assert reply.type == kind | 0x80
    elif kind == MessageType.DECIDE and payload[1] == N_INPUTS:
        assert reply.type == MessageType.DECIDE_REPLY
        assert protocol.decode_decide_reply(reply.payload).logits == 9
    elif kind in (MessageType.PUT, MessageType.GET):
        bad = protocol.ErrorReply(ErrorCode.BAD_PARTS, 0)
        assert (
            (reply.type, reply.payload) == (0x84, b"") if kind == MessageType.PUT else decode_error_reply(reply.payload) == bad
        )
    elif kind == MessageType.DECIDE and payload[0] & 4:
        assert decode_error_reply(reply.payload) == protocol.ErrorReply(ErrorCode.BAD_LENGTH, 4)
    elif kind == MessageType.DECIDE:
        assert decode_error_reply(reply.payload) == protocol.ErrorReply(
            ErrorCode.BAD_LENGTH, 2 + 2 * N_INPUTS + (payload[0] & 2)
        )
    else:
        assert decode_error_reply(reply.payload) == protocol.ErrorReply(ErrorCode.UNKNOWN_TYPE, kind)


@pytest.mark.parametrize("vector", BAD, ids=name_of)
def test_the_firmware_answers_every_bad_frame_with_its_error(answering: Board, vector: dict[str, Any]) -> None:
    reply = ask(answering, bytes.fromhex(vector["encoded_hex"]))
    details = {"BAD_VERSION": 3, "TOO_LONG": 55}
    expected = protocol.ErrorReply(ErrorCode[vector["error"]], details.get(vector["error"], 0))
    assert reply.type == MessageType.ERROR
    assert decode_error_reply(reply.payload) == expected
    assert (reply.sequence, reply.intersection) == (vector["sequence"], vector["intersection"])


def test_the_firmware_counts_what_it_received(answering: Board) -> None:
    def stats() -> protocol.StatsReply:
        return protocol.decode_stats_reply(ask(answering, protocol.encode_frame(Frame(MessageType.STATS, 1, 0))[:-1]).payload)

    before = stats()
    for vector in VECTORS:
        ask(answering, bytes.fromhex(vector["encoded_hex"]))
    after = stats()
    kinds = [vector["error"] for vector in VECTORS]
    assert after.good_frames - before.good_frames == kinds.count(None) + kinds.count("BAD_VERSION") + 1
    assert after.crc_errors - before.crc_errors == kinds.count("BAD_CRC")
    assert after.malformed_frames - before.malformed_frames == kinds.count("MALFORMED") + kinds.count("TOO_LONG")
    assert (after.ring_overruns, after.uart_errors) == (0, 0)


def test_empty_frames_are_ignored(answering: Board) -> None:
    reply = ask(answering, b"\0\0\0" + protocol.encode_frame(Frame(MessageType.HELLO, 9, 0))[:-1])
    assert (reply.type, reply.sequence) == (MessageType.HELLO_REPLY, 9)


def test_an_intersection_that_is_not_there(answering: Board) -> None:
    request = Frame(MessageType.DECIDE, 3, INTERSECTIONS, protocol.encode_decide(protocol.DecideRequest([0] * N_INPUTS)))
    reply = ask(answering, protocol.encode_frame(request)[:-1])
    assert decode_error_reply(reply.payload) == protocol.ErrorReply(ErrorCode.BAD_INTERSECTION, INTERSECTIONS)


def test_a_count_that_does_not_fit_the_length(answering: Board) -> None:
    payload = bytearray(protocol.encode_decide(protocol.DecideRequest([0] * N_INPUTS)))
    payload[1] -= 1
    reply = ask(answering, protocol.encode_frame(Frame(MessageType.DECIDE, 3, 0, bytes(payload)))[:-1])
    assert decode_error_reply(reply.payload) == protocol.ErrorReply(ErrorCode.BAD_LENGTH, 2 + 2 * N_INPUTS + (payload[0] & 2))
