"""A decision in parts: values by PUT, DECIDE without values, the answer by GET.

On a noisy line a frame gets through with a probability that falls exponentially with its length: where 1 byte in 20 is damaged,
1 of 200 exchanges of 100 bytes, but 1 of 4 or 5 of 30 bytes. Values and answer carry a CRC of their own as a whole, beside that
of each frame.
"""

from dataclasses import replace

from hil.deadline import Deadline
from hil.exchange import Answer, Exchanger
from hil.faults import BoardError
from hil.protocol import (
    CRC_BYTES,
    FRAME_OVERHEAD_BYTES,
    DecideReply,
    DecideRequest,
    ErrorCode,
    FrameError,
    MessageType,
    decide_reply_bytes,
    decode_decide_reply,
    decode_gathered,
    decode_part,
    encode_decide_put,
    encode_get,
    encode_put,
)

PART_BYTES = 12  # near the optimum where 1 byte in 20 is damaged


def decide_in_parts(exchanger: Exchanger, intersection: int, request: DecideRequest, whole: Deadline) -> Answer[DecideReply]:
    """The decision, all before the deadline. Raises LinkError; BoardError with BAD_PARTS where it has to start again."""
    decide, content = encode_decide_put(replace(request, logits=False))
    for offset in range(0, len(content), PART_BYTES):
        put = encode_put(offset, content[offset : offset + PART_BYTES])
        exchanger.ask(MessageType.PUT, intersection, put, decode_part(0), whole, reply_bytes=FRAME_OVERHEAD_BYTES)
    reply_bytes = FRAME_OVERHEAD_BYTES + decide_reply_bytes(b"")
    answer = exchanger.ask(MessageType.DECIDE, intersection, decide, decode_decide_reply, whole, reply_bytes=reply_bytes)
    if not request.logits:
        return answer
    sequence, gathered = exchanger.sequence, b""
    while (missing := decide_reply_bytes(gathered) + CRC_BYTES - len(gathered)) > 0:
        length = min(missing, PART_BYTES)
        get = encode_get(sequence, len(gathered), length)
        reply_bytes = FRAME_OVERHEAD_BYTES + length
        gathered += exchanger.ask(MessageType.GET, intersection, get, decode_part(length), whole, reply_bytes=reply_bytes).reply
    try:
        return Answer(decode_gathered(gathered), answer.tries, answer.response_us)
    except FrameError as fault:
        raise BoardError(ErrorCode.BAD_PARTS, 0, f"BAD_PARTS: {fault}") from fault
