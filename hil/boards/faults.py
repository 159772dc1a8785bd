"""What can go wrong between harness and board, as one family of exceptions.

Bad input (an unknown port, a missing compiler) is not here: that is `streetflow.errors.InputError`.
"""

from collections.abc import Sequence


class LinkError(Exception):
    """The board did not deliver. `tries` says how often the request was sent before giving up."""

    def __init__(self, message: str, *, tries: int = 0) -> None:
        self.tries = tries
        super().__init__(message)


class NoAnswer(LinkError):
    """Nothing that could be a reply came back in time."""


class GarbageAnswer(LinkError):
    """Something came back in time, but no valid reply to the request."""


class BoardError(LinkError):
    """The firmware answered with a typed error; `code` and `detail` as in docs/protocol.md."""

    def __init__(self, code: int, detail: int, meaning: str, *, tries: int = 0) -> None:
        self.code = code
        self.detail = detail
        super().__init__(f"the firmware answered with error {code} {meaning}", tries=tries)


class WrongPolicy(LinkError):
    """The board runs, but holds another policy than the one asked for."""

    def __init__(self, expected_sha256: str, found_sha256: str) -> None:
        self.expected_sha256 = expected_sha256
        self.found_sha256 = found_sha256
        super().__init__(
            f"the board holds policy {found_sha256[:12]}, not {expected_sha256[:12]}: "
            "put this one on it with: tinylight flash --policy FILE"
        )


class WrongFirmware(LinkError):
    """The board holds the policy, but its firmware was built with other settings than the run expects."""

    def __init__(self, differences: Sequence[str]) -> None:
        """`differences`: what differs, each with both values."""
        super().__init__(f"the board's firmware was built with other settings: {'; '.join(differences)}")


class BoardDied(LinkError):
    """The board is gone: its program crashed, its process ended, or its port vanished. Retrying is pointless."""
