"""The link: sessions with a board, and decisions within one time budget on the board's clock.

A session begins with HELLO; its reply says which policy the chip holds. A chip that has restarted refuses to decide without
one (NO_SESSION): then the link repeats the handshake and checks policy and settings again, so that no decision is taken from a
board that was swapped for another. Where a whole request doesn't get through a noisy line, it goes in parts. A decision comes
with the CRC of its logits; the logits themselves are fetched on request.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hil.boards.base import Board
from hil.boards.faults import BoardDied, BoardError, GarbageAnswer, LinkError, NoAnswer, WrongFirmware, WrongPolicy
from hil.wire.deadline import Deadline
from hil.wire.exchange import Answer, Counters, Exchanger, Request
from hil.wire.expected_firmware import Setting
from hil.wire.parts import PART_BYTES, decide_in_parts, fetch_logits
from hil.wire.protocol import (
    DECIDE_REPLY_BYTES,
    HELLO_REPLY_BYTES,
    MAX_PAYLOAD_BYTES,
    PACKED_SINCE,
    PARTS_SINCE,
    STATS_REPLY_BYTES,
    DecideReply,
    DecideRequest,
    ErrorCode,
    HelloReply,
    Light,
    MessageType,
    StatsReply,
    decode_decide_reply,
    decode_hello_reply,
    decode_stats_reply,
    encode_decide,
)

__all__ = [
    "BoardDied",
    "BoardError",
    "Counters",
    "Decision",
    "GarbageAnswer",
    "Link",
    "LinkError",
    "NoAnswer",
    "WrongFirmware",
    "WrongPolicy",
]

BUDGET_S = 0.1  # of a decision, round trip (paper, section 4.5)
WHOLE_TRIES = 2  # tries of a request in one piece that are damaged, before it goes in parts


@dataclass(frozen=True)
class Decision:
    """A decision. Times are microseconds on the board's clock.

    `response_us`: last request bit to first reply bit, of the try that was answered; None where a retry was answered sooner
    than the chip could compute: from memory, or by an earlier try's late answer. `round_trip_us`: first byte of the
    first try to the last byte of the reply, retries included. `tries` counts all request frames sent.
    """

    action: int
    phase: int
    compute_cycles: int
    logits_crc: int
    logits: tuple[int, ...]  # empty unless asked for
    response_us: float | None
    round_trip_us: float
    tries: int


class Link:
    """Talks to one board. `hello` first: it refuses a board that holds another policy."""

    def __init__(self, board: Board, *, budget_s: float = BUDGET_S, tries: int = 3, most_decision_cycles: int = 0) -> None:
        """`budget_s`: time that a decision may take on the board's clock, enough for `tries` tries in silence, fewer where the
        chip is slow. `most_decision_cycles`: the chip's bound for a decision, if known; replies report the actual count."""
        if tries < 1 or budget_s <= 0:
            raise ValueError(f"a link needs at least one try and some time, not {tries} and {budget_s} s")
        self.board = board
        self.budget_s = budget_s
        self.most_decision_cycles = most_decision_cycles
        self.greeting: HelloReply | None = None
        self._policy_sha256: str | None = None
        self._setting = Setting()
        self._build_id: int | None = None  # of the first session
        self._known = False  # whether there has been any session
        self._noisy = False  # whether the last decision had to go in parts, and met damage there too
        self._exchanger = Exchanger(board, tries)
        self._last: tuple[int, int, DecideReply] | None = None  # intersection, sequence number and reply of the last decision

    @property
    def counters(self) -> Counters:
        return self._exchanger.counters

    def hello(
        self, policy_sha256: str | None = None, setting: Setting | None = None, *, patience_s: float | None = None
    ) -> HelloReply:
        """Shake hands, sending HELLO until the board answers or its boot time (or `patience_s`) is over.

        With `policy_sha256`, raises WrongPolicy unless the board holds that policy; with `setting`, WrongFirmware unless it is
        built so.
        """
        self._policy_sha256, self._setting, self._build_id = policy_sha256, setting or Setting(), None
        patience_us = self.board.boot_us if patience_s is None else patience_s * 1e6
        return self._greet(Deadline.after(self.board, patience_us), interval_us=self.board.hello_interval_us)

    def greet_again(self) -> HelloReply:
        """The same handshake once more: the chip forgets what it has answered."""
        return self._greet(Deadline.after(self.board, self.board.boot_us), interval_us=self.board.hello_interval_us)

    def decide(self, intersection: int, values: Sequence[int], logits: bool = False, light: Light | None = None) -> Decision:
        """Have the chip decide from the policy's kept features (int16 each), keeping its minimum green if it is given the
        light's state. LinkError if no decision comes in time. `logits`: fetch them too, after the decision."""
        if not self._known:
            raise RuntimeError("no handshake yet: call hello() first")
        request = DecideRequest(values, light)
        whole = Deadline.after(self.board, self.budget_s * 1e6)
        begin_us, sent_before = self.board.now_us(), self.counters.sent
        while True:
            try:
                if self.greeting is None:
                    self._greet(whole)
                answer = self._ask_to_decide(intersection, request, whole)
                break
            except LinkError as fault:
                fault.tries = self.counters.sent - sent_before
                if not isinstance(fault, BoardError) or whole.expired:
                    raise
                if fault.code == ErrorCode.NO_SESSION:
                    self.greeting = None
                    self.counters.sessions_lost += 1
                elif fault.code != ErrorCode.BAD_PARTS:
                    raise
        round_trip_us, tries = self.board.timing().reply_end_us - begin_us, self.counters.sent - sent_before
        compute_us = self._chip_us(answer.reply.compute_cycles)
        self._exchanger.pace.note_compute(compute_us)
        self._last = intersection, self._exchanger.sequence, answer.reply
        return Decision(
            action=answer.reply.action,
            phase=answer.reply.phase,
            compute_cycles=answer.reply.compute_cycles,
            logits_crc=answer.reply.logits_crc,
            logits=self.last_logits() if logits else (),
            response_us=answer.response_us if answer.tries == 1 or answer.response_us >= compute_us else None,
            round_trip_us=round_trip_us,
            tries=tries,
        )

    def last_logits(self) -> tuple[int, ...]:
        """The last decision's logits, fetched from the chip. LinkError if they don't come within a decision's time."""
        if self._last is None:
            raise RuntimeError("no decision yet: call decide() first")
        part_bytes = PART_BYTES if self._noisy else MAX_PAYLOAD_BYTES
        return fetch_logits(self._exchanger, *self._last, Deadline.after(self.board, self.budget_s * 1e6), part_bytes)

    def stats(self, patience_s: float | None = None) -> StatsReply:
        """The chip's counters. LinkError if they don't come within a decision's time, or `patience_s`."""
        whole = Deadline.after(self.board, (self.budget_s if patience_s is None else patience_s) * 1e6)
        return self._exchanger.ask(Request(MessageType.STATS, 0, b"", decode_stats_reply, STATS_REPLY_BYTES), whole).reply

    def _greet(self, whole: Deadline, interval_us: float | None = None) -> HelloReply:
        self.greeting = None
        request = Request(MessageType.HELLO, 0, b"", decode_hello_reply, HELLO_REPLY_BYTES)
        answer = self._exchanger.ask(request, whole, interval_us=interval_us, flush_first=True)
        if self._policy_sha256 is not None and answer.reply.policy_sha256 != self._policy_sha256:
            raise WrongPolicy(self._policy_sha256, answer.reply.policy_sha256)
        if differences := self._setting.differences(answer.reply):
            raise WrongFirmware(differences)
        if self._build_id not in (None, answer.reply.build_id):
            raise WrongFirmware(["it holds another build than before"])
        self._build_id = answer.reply.build_id
        self.greeting = answer.reply
        self._exchanger.pace.most_decision_us = self._chip_us(self.most_decision_cycles)
        self._known = True
        return answer.reply

    def _chip_us(self, cycles: int) -> float:
        """By the clock rate in the chip's HELLO reply; 0 for the host build, which has none."""
        assert self.greeting is not None
        return cycles / self.greeting.f_cpu_hz * 1e6 if self.greeting.f_cpu_hz else 0.0

    def _ask_to_decide(self, intersection: int, request: DecideRequest, whole: Deadline) -> Answer[DecideReply]:
        assert self.greeting is not None
        knows_parts = self.greeting.firmware_version >= PARTS_SINCE
        encoded = encode_decide(request)
        if self.greeting.firmware_version >= PACKED_SINCE:
            encoded = min(encoded, encode_decide(replace(request, packed=True)), key=len)
        if not (knows_parts and self._noisy):
            try:
                ask = Request(MessageType.DECIDE, intersection, encoded, decode_decide_reply, DECIDE_REPLY_BYTES)
                return self._exchanger.ask(ask, whole, damaged_tries=WHOLE_TRIES if knows_parts else None)
            except (NoAnswer, GarbageAnswer, BoardError) as fault:
                refused = isinstance(fault, BoardError) and self._exchanger.is_refusal(fault.code)
                if refused or not knows_parts or whole.expired:
                    raise
        self.counters.in_parts += 1
        retries_before, self._noisy = self.counters.retries, True
        answer = decide_in_parts(self._exchanger, intersection, request, whole)
        self._noisy = self.counters.retries > retries_before
        return answer
