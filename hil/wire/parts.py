"""A decision in parts: values by PUT, DECIDE without values; and its logits, by GET.

On a noisy line a frame gets through with a probability that falls exponentially with its length: where 1 byte in 20 is damaged,
1 of 200 exchanges of 100 bytes, but 1 of 4 or 5 of 30 bytes. Values and logits have a CRC of their own as a whole, beside that
of each frame.
"""

from hil.boards.faults import BoardError
from hil.wire.deadline import Deadline
from hil.wire.exchange import Answer, Exchanger, Request
from hil.wire.protocol import (
    DECIDE_REPLY_BYTES,
    DecideReply,
    DecideRequest,
    ErrorCode,
    MessageType,
    checksum,
    decode_decide_reply,
    decode_logits,
    decode_part,
    encode_decide_put,
    encode_get,
    encode_logits,
    encode_put,
)

PART_BYTES = 12  # near the optimum where 1 byte in 20 is damaged


def decide_in_parts(exchanger: Exchanger, intersection: int, request: DecideRequest, whole: Deadline) -> Answer[DecideReply]:
    """The decision, all before the deadline. Raises LinkError; BoardError with BAD_PARTS where it has to start again."""
    decide, content = encode_decide_put(request)
    for offset in range(0, len(content), PART_BYTES):
        put = encode_put(offset, content[offset : offset + PART_BYTES])
        exchanger.ask(Request(MessageType.PUT, intersection, put, decode_part(0), 0), whole)
    return exchanger.ask(Request(MessageType.DECIDE, intersection, decide, decode_decide_reply, DECIDE_REPLY_BYTES), whole)


def fetch_logits(
    exchanger: Exchanger, intersection: int, sequence: int, reply: DecideReply, whole: Deadline, part_bytes: int
) -> tuple[int, ...]:
    """The logits of the decision that answered the request with that sequence number, by parts of at most `part_bytes`. Raises
    LinkError; BoardError with BAD_PARTS where that decision is no longer the last one, or these are not its logits."""
    gathered, length = b"", len(encode_logits([0] * reply.logits))
    for offset in range(0, length, part_bytes):
        part = min(part_bytes, length - offset)
        get = encode_get(sequence, offset, part)
        gathered += exchanger.ask(Request(MessageType.GET, intersection, get, decode_part(part), part), whole).reply
    if checksum(gathered) != reply.logits_crc:
        raise BoardError(ErrorCode.BAD_PARTS, 0, "BAD_PARTS: the logits are not those of the decision")
    return decode_logits(gathered)
