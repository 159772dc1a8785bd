"""Our own pseudo-terminal: the emulated board's end of a serial port that any program can open.

Linux only: the kernel reports through inotify each time that a program opens or closes the port, and the terminal's settings
show which baud rate was chosen.
"""

import contextlib
import ctypes
import fcntl
import os
import select
import struct
import termios
import tty
from pathlib import Path

from streetflow.errors import InputError

IN_CLOSE_WRITE, IN_CLOSE_NOWRITE, IN_OPEN = 0x08, 0x10, 0x20
EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of a name that a watched file does not have
EVENTS_BYTES = 4096
TERMINALS = "/dev/pts/"
TCGETS2 = 0x802C542A
TERMIOS2_BYTES, TERMIOS2_OUTPUT_SPEED_AT = 44, 40


class PseudoTerminal:
    """A port at `name` (and `link`, a symbolic link to it, if one is asked for) and our end of it.

    `opened` and `closed` events are gathered by `changes`; bytes pass through `receive` and `send`.
    """

    def __init__(self, link: Path | None = None) -> None:
        self._master, slave = os.openpty()
        self.name = os.ttyname(slave)
        tty.setraw(slave)
        settings = termios.tcgetattr(slave)
        settings[2] |= termios.HUPCL  # as serial ports have it: the last close drops DTR
        termios.tcsetattr(slave, termios.TCSANOW, settings)
        os.close(slave)
        os.set_blocking(self._master, False)
        self._openers = 0
        self._notices = _watch(self.name)
        self.link = link
        if link is not None:
            try:
                _point(link, self.name)
            except InputError:
                self.link = None
                self.close()
                raise

    def close(self) -> None:
        """Removes the port and its link."""
        if self.link is not None:
            with contextlib.suppress(OSError):
                if os.readlink(self.link) == self.name:
                    self.link.unlink()
        os.close(self._notices)
        os.close(self._master)

    @property
    def is_open(self) -> bool:
        """Whether any program has the port open, as of the last `changes`."""
        return self._openers > 0

    def changes(self) -> list[str]:
        """What has happened to the port since the last call: "opened" (by the first program) and "closed" (by the last)."""
        try:
            events = os.read(self._notices, EVENTS_BYTES)
        except BlockingIOError:
            return []
        happened = []
        for _, mask, _, _ in EVENT.iter_unpack(events):
            if mask & IN_OPEN:
                self._openers += 1
                if self._openers == 1:
                    happened.append("opened")
            elif mask & (IN_CLOSE_WRITE | IN_CLOSE_NOWRITE) and self._openers:
                self._openers -= 1
                if not self._openers:
                    happened.append("closed")
        return happened

    @property
    def baud(self) -> int:
        """The rate that the port is set to, non-standard rates included."""
        settings = bytearray(TERMIOS2_BYTES)
        fcntl.ioctl(self._master, TCGETS2, settings)
        return int.from_bytes(settings[TERMIOS2_OUTPUT_SPEED_AT : TERMIOS2_OUTPUT_SPEED_AT + 4], "little")

    @property
    def drops_dtr_on_close(self) -> bool:
        """HUPCL; `stty -hupcl` clears it on a desk, so that opening the port does not reset the board."""
        return bool(termios.tcgetattr(self._master)[2] & termios.HUPCL)

    def receive(self, limit: int) -> bytes:
        """At most `limit` bytes that were written to the port."""
        try:
            return os.read(self._master, limit)
        except OSError:  # no data, or no program at the other end
            return b""

    def send(self, data: bytes) -> None:
        """Sends bytes to the program that has the port open; what none reads is lost, as on a wire."""
        with contextlib.suppress(OSError):
            os.write(self._master, data)

    def wait(self, timeout_s: float) -> None:
        """Waits until data comes, the port is opened or closed, or the time is over."""
        poller = select.poll()
        poller.register(self._notices, select.POLLIN)
        if self.is_open:  # a closed port's hang-up would be reported over and over
            poller.register(self._master, select.POLLIN)
        poller.poll(timeout_s * 1000)


def _watch(name: str) -> int:
    """An inotify handle that reports when the file is opened and closed."""
    library = ctypes.CDLL(None, use_errno=True)
    handle = int(library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    if handle < 0 or library.inotify_add_watch(handle, name.encode(), IN_OPEN | IN_CLOSE_WRITE | IN_CLOSE_NOWRITE) < 0:
        raise InputError(name, "", f"can't be watched: {os.strerror(ctypes.get_errno())}")
    return handle


def _point(link: Path, target: str) -> None:
    """Makes `link` a symbolic link, in place of one that an earlier run has left."""
    try:
        if link.is_symlink() and _is_stale(link, target):
            link.unlink()
        link.symlink_to(target)
    except OSError as fault:
        raise InputError(link, "", f"can't be made a link to {target}: {fault.strerror}") from fault


def _is_stale(link: Path, target: str) -> bool:
    """Whether a link was left by a run that has ended: it leads to nothing, to the terminal that is ours now (numbers are given
    again), or to a terminal that is younger than the link."""
    where = os.readlink(link)
    if not link.exists() or where == target:
        return True
    return where.startswith(TERMINALS) and os.stat(where).st_ctime_ns > os.lstat(link).st_mtime_ns
