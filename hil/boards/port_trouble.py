"""What can be wrong with a serial port, and what to do about it, in words."""

import contextlib
import errno
import os
from pathlib import Path
from urllib.parse import urlsplit

from serial.tools import list_ports

from streetflow.errors import InputError
from streetflow.near import did_you_mean

NO_PORT = "is not a serial port"
NETWORK_SCHEMES = ("socket", "rfc2217")  # URLs that need a host and a port
OTHER_BOARDS = ("simavr", "host", "auto")  # candidates for "did you mean"


def is_no_port(url: str) -> bool:
    """Whether the path leads to something else, such as a file."""
    return os.path.exists(url) and not Path(url).is_char_device()


def is_network(url: str) -> bool:
    """Whether it is a URL of a port behind a network."""
    return url.partition("://")[0].lower() in NETWORK_SCHEMES


def require_port(url: str) -> None:
    """InputError for a port that can't exist: a name without a device, a network URL without host or port.
    Whether it can be opened is another matter."""
    if "://" in url:
        fault = _url_fault(url)
        if fault:
            raise InputError(url, "", fault)
    elif os.name == "posix" and not os.path.exists(url):
        raise InputError(url, "", remedy(url, FileNotFoundError(errno.ENOENT, "No such file")))


def _url_fault(url: str) -> str:
    """What a network URL lacks, "" if nothing or if it is a URL of another kind."""
    if not is_network(url):
        return ""
    form = f"{url.partition('://')[0].lower()}://HOST:PORT"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as fault:
        return f"must be {form} ({fault})"
    if not host:
        return f"names no host: {form}"
    if not port:  # 0 is none to connect to
        return f"names no port: {form}"
    return ""


def remedy(url: str, fault: Exception) -> str:
    """What went wrong when opening, and what to do about it."""
    if is_no_port(url):
        return NO_PORT
    number = getattr(fault, "errno", None)
    text = str(fault)
    if number == errno.EACCES or "Permission denied" in text:
        return "permission denied: add yourself to the group dialout (sudo usermod -aG dialout $USER) and log in again"
    if number in (errno.EBUSY, errno.EAGAIN) or "exclusively lock" in text or "busy" in text:
        return f"is in use by another program: close it{held_by(url)}"
    if "://" in url and isinstance(fault, ValueError):
        return f"pyserial doesn't know this kind of URL ({text})"
    if is_network(url):
        return f"can't be reached: is the server running there? ({text})"
    if "://" in url:
        return f"can't be opened ({text})"
    if number == errno.ENOENT or "No such file" in text or "FileNotFoundError" in text:
        return f"there is no such port{did_you_mean(url, OTHER_BOARDS) or ':'} {ports_present()}"
    return f"can't be opened as a serial port: {os.strerror(number) if number else text}"


def ports_present() -> str:
    ports = [f"{port.device} ({port.description})" for port in list_ports.comports()]
    if not ports:
        return "no serial port is present; is the board plugged in?"
    return "the ports present are " + ", ".join(ports)


def held_by(url: str) -> str:
    """Which processes hold the port, where /proc shows it, as the end of a message; else ""."""
    if not Path(url).exists():
        return ""
    target = os.path.realpath(url)
    holders = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if process.name != str(os.getpid()) and any(
                os.path.realpath(handle) == target for handle in (process / "fd").iterdir()
            ):
                holders.append(f"{(process / 'comm').read_text().strip()} (process {process.name})")
    return f"; held by {', '.join(holders)}" if holders else ""
