"""Frames out of a stream of bytes: what lies between two delimiters, and how long it may be."""

from dataclasses import dataclass, field

DELIMITER = b"\x00"
HEADER_BYTES = 4  # version, type, sequence, intersection
CRC_BYTES = 2
MAX_PAYLOAD_BYTES = 200
# The longest frame on the wire: COBS adds one byte per 254, the delimiter is one more.
MAX_FRAME_BYTES = HEADER_BYTES + MAX_PAYLOAD_BYTES + CRC_BYTES + 2


@dataclass
class FrameSplitter:
    """Cuts a byte stream at the delimiters; anything longer than a frame is dropped up to the next delimiter."""

    dropped_bytes: int = 0
    _part: bytearray = field(default_factory=bytearray)
    _overlong: bool = False

    def feed(self, data: bytes) -> list[bytes]:
        """The frames completed by `data`, without delimiters; empty ones are left out."""
        *ends, rest = data.split(DELIMITER)
        frames = []
        for end in ends:
            self._add(end)
            if self._part:
                frames.append(bytes(self._part))
            self.clear()
        self._add(rest)
        return frames

    def pending_bytes(self) -> int:
        """Bytes of a frame that has not ended yet."""
        return len(self._part)

    def clear(self) -> None:
        self._part.clear()
        self._overlong = False

    def _add(self, part: bytes) -> None:
        if not self._overlong:
            self._part += part
            if len(self._part) < MAX_FRAME_BYTES:
                return
            self._overlong = True
            part = bytes(self._part)
            self._part.clear()
        self.dropped_bytes += len(part)
