"""Whether the board runs the very build that is judged: flash, RAM and stack of any other are not known here."""

import contextlib
from typing import NamedTuple

from hil.build.build_id import BuildId
from hil.build.firmware import Firmware
from hil.build.footprint import Footprint
from hil.wire.expected_firmware import kernel_name
from hil.wire.link import Link, LinkError


class Judged(NamedTuple):
    """The part of a firmware that a board is judged by: what a record keeps of it."""

    policy_sha256: str
    kernel: str
    build: BuildId | None

    @classmethod
    def of(cls, firmware: Firmware) -> "Judged":
        return cls(firmware.policy_sha256, firmware.kernel, firmware.build)


class Identity(NamedTuple):
    """A board's program beside the one that is judged.

    ``told`` is None of firmware before 2.2 and of the host build, ``judged`` of the host build. ``static_ram_bytes`` are the
    board's own count, if it could be asked.
    """

    told: BuildId | None
    judged: BuildId | None
    kernels: tuple[str, str]  # the board's, and that of the build judged
    static_ram_bytes: int | None
    judged_static_ram_bytes: int | None

    @property
    def is_judged(self) -> bool:
        """Whether it is the build that is judged."""
        return self.told is not None and self.told == self.judged

    @property
    def why_not(self) -> str:
        """Why the build's sizes are not the board's; "" if they are, or if there is no chip."""
        if self.judged is None or self.is_judged:
            return ""
        if self.told is None:
            return "the board's firmware, older than 2.2, doesn't tell which build it is"
        kernel = f", kernel {self.kernels[0]} for {self.kernels[1]}" if self.kernels[0] != self.kernels[1] else ""
        return f"the board holds another build ({self.told}{kernel}); `tinylight flash` puts this one on it"

    @property
    def fault(self) -> str:
        """What can't be true of this build."""
        counted = self.static_ram_bytes
        if self.is_judged and counted is not None and counted != self.judged_static_ram_bytes:
            return f"the board counts {counted} B of statics, its build has {self.judged_static_ram_bytes}"
        return ""


def identity_of(link: Link, firmware: Firmware | Judged, footprint: Footprint | None, *, ask: bool = True) -> Identity:
    """Of a board that has been greeted. `ask`: for its own count of statics, too."""
    greeting = link.greeting
    assert greeting is not None
    told = None
    if greeting.build_id and greeting.program_bytes is not None:
        told = BuildId(greeting.build_id, greeting.program_bytes)
    statics = None
    with contextlib.suppress(LinkError):
        statics = link.stats().static_ram_bytes if ask and footprint is not None else None
    judged_statics = footprint.static_ram_bytes if footprint is not None else None
    return Identity(told, firmware.build, (kernel_name(greeting), firmware.kernel), statics, judged_statics)
