"""The codec: known frames, malformed ones, and round trips of anything that fits.

`test_frame_vectors.py` holds it, and the firmware's C codec, against tests/firmware/vectors/frames.json.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.wire import protocol
from hil.wire.protocol import (
    MAX_FRAME_BYTES,
    MAX_PAYLOAD_BYTES,
    BadCrc,
    BadVersion,
    DecideReply,
    DecideRequest,
    ErrorReply,
    Frame,
    FrameError,
    FrameSplitter,
    HelloReply,
    Light,
    MalformedFrame,
    MessageType,
    StatsReply,
    checksum,
    decode_frame,
    encode_frame,
)

u8, u16, u32 = (st.integers(0, 2**bits - 1) for bits in (8, 16, 32))
i16, i32 = (st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (16, 32))
frames = st.builds(Frame, type=u8, sequence=u8, intersection=u8, payload=st.binary(max_size=MAX_PAYLOAD_BYTES))


def test_the_crc_is_mcrf4xx() -> None:
    assert checksum(b"123456789") == 0x6F91
    assert checksum(b"") == 0xFFFF


def test_a_frame_worked_out_by_hand() -> None:
    """HELLO number 7: content 03 01 07 00; its CRC bit by bit; COBS: the zero byte turns into a jump of 3."""
    crc = 0xFFFF
    for byte in b"\x03\x01\x07\x00":
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x8408 if crc & 1 else 0)
    low, high = crc & 0xFF, crc >> 8
    assert low and high
    encoded = encode_frame(Frame(MessageType.HELLO, 7, 0))
    assert encoded == bytes((4, 3, 1, 7, 3, low, high, 0))
    assert decode_frame(encoded[:-1]) == Frame(1, 7, 0)


@given(frames)
def test_frames_round_trip(frame: Frame) -> None:
    encoded = encode_frame(frame)
    assert encoded.endswith(b"\0") and encoded.count(0) == 1
    assert len(encoded) <= MAX_FRAME_BYTES
    assert decode_frame(encoded[:-1]) == frame


@given(frames, st.data())
def test_one_or_two_flipped_bits_never_pass(frame: Frame, data: st.DataObject) -> None:
    encoded = bytearray(encode_frame(frame)[:-1])
    bits = st.integers(0, 8 * len(encoded) - 1)
    for bit in data.draw(st.sets(bits, min_size=1, max_size=2)):
        encoded[bit // 8] ^= 1 << bit % 8
    try:
        decoded = decode_frame(bytes(encoded))
    except FrameError:
        return
    # Flips in COBS's own bytes may move zeros about; the CRC lets 1 in 65536 of such changes pass.
    assert decoded != frame


@given(st.binary(max_size=300))
def test_garbage_is_refused_with_a_frame_error_or_is_a_frame(data: bytes) -> None:
    try:
        frame = decode_frame(data)
    except FrameError:
        return
    assert decode_frame(encode_frame(frame)[:-1]) == frame


@pytest.mark.parametrize(
    ("encoded", "kind"),
    [
        (b"", MalformedFrame),
        (b"\x01", MalformedFrame),
        (b"\x06\x01\x01\x07\x01\x02", MalformedFrame),  # five bytes: shorter than header and CRC
        (b"\x09\x01\x01", MalformedFrame),  # COBS jumps beyond the end
        (b"\x03\x01\x00\x07", MalformedFrame),  # a zero inside
        (b"\x04\x01\x01\x07\x03\x11\x22", BadCrc),
    ],
)
def test_malformed_frames(encoded: bytes, kind: type[FrameError]) -> None:
    with pytest.raises(kind):
        decode_frame(encoded)


def test_another_version_is_refused_only_if_the_crc_is_right() -> None:
    encoded = encode_frame(Frame(MessageType.HELLO, 1, 0, version=1))[:-1]
    with pytest.raises(BadVersion, match="version 1"):
        decode_frame(encoded)
    with pytest.raises(BadCrc):
        decode_frame(encoded[:-1] + bytes((encoded[-1] ^ 1 or 2,)))


def test_a_payload_beyond_the_limit_is_not_sent() -> None:
    with pytest.raises(ValueError, match="at most 200 bytes"):
        encode_frame(Frame(MessageType.DECIDE, 0, 0, bytes(201)))


lights = st.none() | st.builds(protocol.Light, st.integers(0, 255), st.integers(0, 255))


@given(st.lists(i16, max_size=98), lights)
def test_decide_requests_round_trip(values: list[int], light: protocol.Light | None) -> None:
    payload = protocol.encode_decide(DecideRequest(values, light))
    assert payload[:2] == bytes(((light is not None) << 1, len(values)))
    decoded = protocol.decode_decide(payload)
    assert (list(decoded.values), decoded.light) == (values, light)


def test_a_long_green_is_told_as_the_longest_there_is() -> None:
    assert protocol.encode_decide(DecideRequest([7], protocol.Light(3, 1000))) == b"\x02\x01\x07\x00\x03\xff"


def test_decide_requests_are_little_endian_int16() -> None:
    assert protocol.encode_decide(DecideRequest([1, -2, 0x1234])) == b"\x00\x03\x01\x00\xfe\xff\x34\x12"


@pytest.mark.parametrize("values", [[32768], [-32769], [0] * 99])
def test_decide_requests_that_do_not_fit(values: list[int]) -> None:
    with pytest.raises(ValueError):
        protocol.encode_decide(DecideRequest(values))


@pytest.mark.parametrize("payload", [b"", b"\x01", b"\x01\x01\x00", b"\x01\x01\x00\x00\x00", b"\x02\x01\x00\x00\x00"])
def test_decide_requests_of_a_wrong_length(payload: bytes) -> None:
    with pytest.raises(MalformedFrame):
        protocol.decode_decide(payload)


def test_the_hello_reply_byte_by_byte() -> None:
    payload = bytes((1, 2, 3, 4)) + b"\x00\x24\xf4\x00" + b"\x00\xc2\x01\x00" + bytes((5, 60)) + bytes(range(32)) + b"\x07\x0a"
    reply = protocol.decode_hello_reply(payload)
    digest = bytes(range(32)).hex()
    assert reply == HelloReply((1, 2), 3, 4, 16_000_000, 115_200, 5, 60, digest, 7, 10)
    assert protocol.encode_hello_reply(reply) == payload


def test_the_hello_reply_of_firmware_2_2_byte_by_byte() -> None:
    head = bytes((2, 2, 3, 4)) + b"\x00\x24\xf4\x00" + b"\x00\xc2\x01\x00" + bytes((5, 60)) + bytes(range(32))
    payload = head + b"\x78\x56\x34\x12" + b"\xf8\x32" + b"\x07\x0a" + b"\x0a"
    reply = protocol.decode_hello_reply(payload)
    assert (reply.build_id, reply.program_bytes) == (0x12345678, 13_048)
    assert (reply.reset_cause, reply.boot_count) == (7, 10)
    assert reply.conditions == protocol.WATCHDOG_ON | protocol.FLASH_SOUND
    assert protocol.encode_hello_reply(reply) == payload
    with pytest.raises(MalformedFrame):
        protocol.decode_hello_reply(payload[:-1])


def test_packed_values_byte_by_byte() -> None:
    """A base, int8, then half a byte above it for each value, the lower half first; a 15 and a byte; or a 15, a 255, int16."""
    assert protocol.encode_decide(DecideRequest([-3, 0, 11, -1], packed=True)) == b"\x08\x04\xfd\x30\x2e"
    assert protocol.encode_decide(DecideRequest([-3, 0, 12], packed=True)) == b"\x08\x03\xfd\x30\xff\x00"
    assert protocol.encode_decide(DecideRequest([0, 0, 0, 300, 254], packed=True)) == bytes.fromhex("0805 0000f0ff2c01ef0f")
    with_light = DecideRequest([7, -32768], Light(2, 9), packed=True)
    assert protocol.encode_decide(with_light) == b"\x0a\x02\x07\xf0\xff\x00\x80\x02\x09"


@given(
    st.lists(st.one_of(st.integers(-130, 130), st.integers(-(1 << 15), (1 << 15) - 1)), max_size=60),
    st.one_of(st.none(), st.builds(Light, st.integers(0, 255), st.integers(0, 255))),
)
def test_packed_requests_round_trip(values: list[int], light: Light | None) -> None:
    request = DecideRequest(tuple(values), light, packed=True)
    payload = protocol.encode_decide(request)
    assert protocol.decode_decide(payload) == request
    for other in (payload + b"\x00", payload[:-1]):
        with pytest.raises(MalformedFrame):
            protocol.decode_decide(other)


def test_the_stats_reply_byte_by_byte() -> None:
    payload = b"\x01\x00\x00\x80\x02\x00\x00\x00" + b"".join(bytes((n, n)) for n in range(3, 13))
    reply = protocol.decode_stats_reply(payload)
    assert reply == StatsReply(0x80000001, 2, *(n * 0x101 for n in range(3, 13)))
    assert reply.untouched_ram_bytes == 0x0909
    assert reply.static_ram_bytes == 0x0A0A
    assert (reply.beyond_range, reply.at_limit) == (0x0B0B, 0x0C0C)
    assert protocol.encode_stats_reply(reply) == payload
    older = protocol.decode_stats_reply(payload[:24])
    assert (older.static_ram_bytes, older.beyond_range, older.at_limit) == (0x0A0A, None, None)
    assert protocol.encode_stats_reply(older) == payload[:24]
    for wrong in (payload[:26], payload + b"\0"):
        with pytest.raises(MalformedFrame, match="not 28"):
            protocol.decode_stats_reply(wrong)


def test_the_decide_reply_byte_by_byte() -> None:
    payload = b"\x02\x07\x09\x91\x67\x01\x34\x12"
    reply = protocol.decode_decide_reply(payload)
    assert reply == DecideReply(2, 7, 0x16791, 9, 0x1234)
    assert protocol.encode_decide_reply(reply) == payload


@given(st.lists(st.integers(-(1 << 23), (1 << 23) - 1), max_size=48))
def test_logits_round_trip(logits: list[int]) -> None:
    content = protocol.encode_logits(logits)
    assert len(content) == 3 * len(logits)
    assert protocol.decode_logits(content) == tuple(logits)
    assert protocol.logits_checksum(logits) == protocol.checksum(content)


def test_logits_are_little_endian_int24() -> None:
    assert protocol.encode_logits((1, -2, 0x123456)) == b"\x01\x00\x00\xfe\xff\xff\x56\x34\x12"


@given(u8, u8)
def test_error_replies_round_trip(code: int, detail: int) -> None:
    assert protocol.decode_error_reply(protocol.encode_error_reply(ErrorReply(code, detail))) == ErrorReply(code, detail)


def test_errors_have_names() -> None:
    assert ErrorReply(5, 3).meaning == "BAD_INTERSECTION, detail 3"
    assert ErrorReply(99, 0).meaning == "(unknown), detail 0"


@pytest.mark.parametrize("size", [0, 1, 45, 47])
def test_replies_of_a_wrong_length(size: int) -> None:
    for decode in (
        protocol.decode_hello_reply,
        protocol.decode_stats_reply,
        protocol.decode_error_reply,
        protocol.decode_decide_reply,
    ):
        with pytest.raises(MalformedFrame):
            decode(bytes(size) if size != 47 else b"\x01" * size)


@given(st.lists(frames, max_size=5), st.data())
def test_a_stream_is_cut_at_its_delimiters_however_it_arrives(sent: list[Frame], data: st.DataObject) -> None:
    stream = b"".join(data.draw(st.sampled_from([b"", b"\0", b"\0\0"])) + encode_frame(frame) for frame in sent)
    splitter, received = FrameSplitter(), []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        received += [decode_frame(encoded) for encoded in splitter.feed(stream[:cut])]
        stream = stream[cut:]
    assert received == sent
    assert splitter.dropped_bytes == splitter.pending_bytes() == 0


def test_an_endless_frame_is_dropped_up_to_the_next_delimiter() -> None:
    splitter = FrameSplitter()
    longest = encode_frame(Frame(0x82, 1, 0, bytes(range(1, 201))))
    assert len(longest) <= MAX_FRAME_BYTES
    assert splitter.feed(b"\x55" * 10_000) == []
    assert splitter.dropped_bytes == 10_000
    assert splitter.feed(b"\x66\x00" + longest) == [longest[:-1]]
    assert splitter.dropped_bytes == 10_001
    splitter.feed(b"\x01\x02")
    assert splitter.pending_bytes() == 2
    splitter.clear()
    assert splitter.feed(longest) == [longest[:-1]]
