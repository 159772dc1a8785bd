"""Asks a board in frames that the link wouldn't send, and takes all that comes back."""

from hil.boards.base import ExchangeTiming
from hil.wire.link import Link
from hil.wire.protocol import (
    DECIDE_REPLY_BYTES,
    FRAME_OVERHEAD_BYTES,
    WIRE_ERRORS,
    ErrorCode,
    ErrorReply,
    Frame,
    FrameError,
    FrameSplitter,
    HelloReply,
    MessageType,
    decode_error_reply,
    decode_frame,
    decode_hello_reply,
    encode_frame,
)

PATIENCE_US = 200_000  # for a first reply, beside the time of the bytes and of the inference
QUIET_US = 20_000  # after a reply nothing more may come for so long
ENDLESS_US = 300_000  # what still comes so long after that is no reply
SEQUENCE = 200  # of the first frame; what the link has sent before is far from it


class NoReplyError(Exception):
    """Nothing that can be read has come."""


class Asker:
    """One board. `timing` is of the last request and its first reply."""

    def __init__(self, link: Link, intersection: int) -> None:
        self.link, self.board, self.intersection = link, link.board, intersection
        clock_hz = link.greeting.f_cpu_hz if link.greeting is not None else 0
        self._patience_us = PATIENCE_US + (link.most_decision_cycles / clock_hz * 1e6 if clock_hz else 0.0)
        self.sequence = SEQUENCE
        self.timing: ExchangeTiming | None = None

    def frame(self, kind: int, payload: bytes = b"", *, again: bool = False) -> Frame:
        """A request with the next sequence number; with the last one if `again`."""
        self.sequence = self.sequence if again else (self.sequence + 1) % 256
        return Frame(kind, self.sequence, self.intersection, payload)

    def ask(self, request: Frame) -> Frame:
        """The first reply, which must carry the request's numbers and be of its type, or an error."""
        (reply, *_) = self.ask_all(encode_frame(request))
        if (reply.sequence, reply.intersection) != (request.sequence, request.intersection):
            raise NoReplyError(
                f"answered with sequence {reply.sequence} and intersection {reply.intersection}, "
                f"where {request.sequence} and {request.intersection} were asked"
            )
        if reply.type not in (request.type | 0x80, MessageType.ERROR):
            raise NoReplyError(f"answered with type 0x{reply.type:02X} to 0x{request.type:02X}")
        return reply

    def ask_all(self, encoded: bytes) -> list[Frame]:
        """All frames that come, at least one: until the line is quiet. NoReplyError if it never is."""
        board, splitter = self.board, FrameSplitter()
        board.drain()
        board.write(encoded)
        line_us = (len(encoded) + FRAME_OVERHEAD_BYTES + DECIDE_REPLY_BYTES) * board.byte_us
        frames: list[Frame] = []
        end_us, self.timing = board.now_us() + line_us + self._patience_us, None
        last_us = end_us + ENDLESS_US
        while data := board.read(end_us):
            if board.now_us() > last_us:
                raise NoReplyError("what comes back doesn't end")
            for each in splitter.feed(data):
                try:
                    frames.append(decode_frame(each))
                except FrameError:
                    raise NoReplyError("what comes back can't be read") from None
            if frames and self.timing is None:
                self.timing = board.timing()
            if frames:
                end_us = board.now_us() + QUIET_US + board.settle_us
        if not frames:
            raise NoReplyError("no answer")
        return frames

    def ask_until_up(self, request: Frame, patience_us: float) -> Frame:
        """Asks a chip that starts anew until it answers to more than half of the request."""
        end_us = self.board.now_us() + patience_us
        while True:
            try:
                (answer, *_) = self.ask_all(b"\0" + encode_frame(request))
                half_heard = answer.type == MessageType.ERROR and decode_error_reply(answer.payload).code in WIRE_ERRORS
                if not half_heard or self.board.now_us() > end_us:
                    return answer
            except NoReplyError:
                if self.board.now_us() > end_us:
                    raise

    def hello(self) -> HelloReply:
        reply = self.ask(self.frame(MessageType.HELLO))
        if reply.type == MessageType.ERROR:
            raise NoReplyError(f"HELLO refused: {decode_error_reply(reply.payload).meaning}")
        return decode_hello_reply(reply.payload)


def not_refused(answer: Frame, *right: tuple[ErrorCode, int | None]) -> list[str]:
    """What is wrong with an answer that should be one of these refusals, with their detail unless None."""
    names = " or ".join(code.name for code, _ in right)
    if answer.type != MessageType.ERROR:
        return [f"answered, where {names} is right"]
    told = decode_error_reply(answer.payload)
    for code, detail in right:
        if told.code == code:
            return [] if detail in (None, told.detail) else [f"{names} with detail {told.detail}, where {detail} is right"]
    return [f"refused with {_name(told)}, where {names} is right"]


def _name(error: ErrorReply) -> str:
    return error.meaning.partition(",")[0]
