"""The emulated chip with a firmware, greeted, for tests."""

from collections.abc import Callable

from hil.boards import open_board
from hil.build.firmware import Firmware
from hil.wire.link import Link
from model.policy.file import Policy


def emulated(firmware: Firmware, policy: Policy) -> tuple[Link, Callable[[], None]]:
    board = open_board("simavr", firmware, f_cpu_hz=firmware.f_cpu_hz, baud=firmware.baud)
    board.open()
    link = Link(board)
    link.hello(policy.sha256)
    return link, board.close
