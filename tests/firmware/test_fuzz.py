"""Hostile bytes, seeded: against the firmware's C with sanitizers, the Python codec, and the emulated chip back to back.

`make fuzz` does the first with libFuzzer, coverage-guided.
"""

import itertools
import random
import subprocess
from pathlib import Path

import pytest
from cobs import cobs
from hypothesis import given
from hypothesis import strategies as st

from hil.boards import SimavrBoard
from hil.build.firmware import build_firmware
from hil.wire.protocol import (
    DELIMITER,
    MAX_FRAME_BYTES,
    MAX_PAYLOAD_BYTES,
    VERSION,
    BadCrc,
    Frame,
    FrameError,
    FrameSplitter,
    MessageType,
    decode_decide,
    decode_decide_reply,
    decode_error_reply,
    decode_frame,
    decode_hello_reply,
    decode_logits,
    decode_stats_reply,
    encode_frame,
)
from tests.firmware.fuzz.build import build_target
from tests.firmware.test_boards_firmware import SHAPES
from tests.helpers.random_policy import write_random_policy

FRAMES = st.builds(
    Frame,
    st.integers(0, 255),
    st.integers(0, 255),
    st.integers(0, 255),
    st.binary(max_size=MAX_PAYLOAD_BYTES),
    st.just(VERSION),
)


@pytest.fixture(scope="module")
def policy_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("policy") / "policy.json"
    write_random_policy(file, 5, shapes=SHAPES)
    return file


def test_the_firmwares_c_under_sanitizers(policy_file: Path, tmp_path: Path) -> None:
    program = tmp_path / "target"
    build_target(program, policy_file, "gcc", "-DSTANDALONE=1", "-Wall", "-Wextra", "-Werror")
    done = subprocess.run([str(program), "1", "20000"], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    counts = [int(part.split(":")[1]) for part in done.stderr.strip().split(",")]
    heard, good, errors = counts
    assert heard > 60_000 and good > 20_000 and errors > 20_000, "every kind must occur for the run to mean something"


@given(st.binary(max_size=2 * MAX_FRAME_BYTES))
def test_the_python_decoder_takes_any_bytes(data: bytes) -> None:
    try:
        frame = decode_frame(data)
    except FrameError:
        return
    assert decode_frame(encode_frame(frame)[:-1]) == frame


@given(FRAMES)
def test_every_frame_comes_back(frame: Frame) -> None:
    encoded = encode_frame(frame)
    assert encoded.count(0) == 1 and encoded.endswith(DELIMITER) and len(encoded) <= MAX_FRAME_BYTES
    assert decode_frame(encoded[:-1]) == frame


@given(FRAMES, st.data())
def test_one_changed_byte_is_always_noticed(frame: Frame, data: st.DataObject) -> None:
    """CRC-16 sees every burst of up to 16 bits."""
    content = bytearray(cobs.decode(encode_frame(frame)[:-1]))
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(BadCrc):
        decode_frame(cobs.encode(bytes(content)))


@pytest.mark.parametrize(
    "decode",
    [decode_decide, decode_hello_reply, decode_decide_reply, decode_stats_reply, decode_error_reply, decode_logits],
    ids=lambda decode: decode.__name__,
)
def test_the_python_messages_take_any_payload(decode) -> None:
    @given(st.binary(max_size=MAX_PAYLOAD_BYTES))
    def take(payload: bytes) -> None:
        try:
            decode(payload)
        except FrameError as fault:
            assert isinstance(fault, ValueError)

    take()


@given(st.lists(FRAMES, max_size=5), st.binary(max_size=40), st.lists(st.integers(0, 1300), max_size=8))
def test_a_stream_may_be_cut_anywhere(frames: list[Frame], noise: bytes, cuts: list[int]) -> None:
    stream = noise.replace(DELIMITER, b"") + DELIMITER + b"".join(encode_frame(frame) for frame in frames)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    splitter = FrameSplitter()
    parts = [part for begin, end in itertools.pairwise(edges) for part in splitter.feed(stream[begin:end])]
    assert [decode_frame(part) for part in parts[len(parts) - len(frames) :]] == frames
    assert splitter.pending_bytes() == 0


def hostile(rng: random.Random) -> bytes:
    """A frame that may be sound, cut, changed, overlong or noise, with or without its delimiter."""
    kind = rng.choice([MessageType.HELLO, MessageType.DECIDE, MessageType.STATS, MessageType.PUT, MessageType.GET, 0x42, 0xFF])
    frame = Frame(kind, rng.randrange(256), rng.randrange(4), rng.randbytes(rng.choice([0, 2, 3, 13, 44, 46, 90])))
    encoded = bytearray(encode_frame(frame))
    for _ in range(rng.choice([0, 0, 1, 3])):
        encoded[rng.randrange(len(encoded))] = rng.randrange(256)
    return rng.choice([bytes(encoded), bytes(encoded[: rng.randrange(len(encoded))]), rng.randbytes(rng.randrange(1, 70))])


def test_ten_thousand_hostile_frames_back_to_back_on_the_emulated_chip(policy_file: Path) -> None:
    """No crash and no hang; after every hundred the next good frame is answered within two frames."""
    rng = random.Random(4)
    hello = encode_frame(Frame(MessageType.HELLO, 200, 0))
    firmware = build_firmware(policy_file, baud=500_000)
    with SimavrBoard(firmware.elf, f_cpu_hz=16_000_000, baud=500_000) as board:
        for _ in range(100):
            for frame in (hostile(rng) for _ in range(100)):
                board.write(frame)
                while board.line_free_us > board.now_us():  # no pause between frames
                    board.read(board.line_free_us)
            answered = [is_hello_reply(board, hello) for _ in range(2)]
            assert answered[1], "the first may close what was left open"
        assert board.watchdog_resets == 0


def is_hello_reply(board: SimavrBoard, hello: bytes) -> bool:
    """Sends HELLO, and listens until the line is quiet."""
    board.write(hello)
    splitter, seen = FrameSplitter(), False
    while data := board.read(board.now_us() + 10_000):
        for part in splitter.feed(data):
            try:
                frame = decode_frame(part)
            except FrameError:
                continue
            seen |= (frame.type, frame.sequence) == (MessageType.HELLO_REPLY, 200)
    return seen
