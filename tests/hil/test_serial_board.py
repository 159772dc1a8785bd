"""The serial board over sockets, a telnet server (RFC 2217), a pseudo-terminal and pyserial's loop, without hardware."""

import contextlib
import errno
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
import serial
import serial.rfc2217

from hil.boards import SerialBoard, open_board
from hil.boards.faults import BoardDied
from hil.boards.find_port import find_port
from hil.wire.expected_firmware import Setting
from hil.wire.link import Link, NoAnswer, WrongPolicy
from hil.wire.probe import answering_baud, handshake_fault
from streetflow.errors import InputError
from tests.helpers.board_server import Responder, Server, booting_firmware, firmware
from tests.helpers.fake_board import DECISION, HELLO, SHA256, STATS

BAUD = 115_200


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(respond: Responder, greeting: bytes = b"") -> Server:
        servers.append(Server(respond, greeting))
        return servers[-1]

    yield start
    for server in servers:
        server.hang_up()


@pytest.fixture
def pty_port() -> Iterator[tuple[int, str]]:
    """A pseudo-terminal: our end's file handle, and the other end's name."""
    master, slave = os.openpty()
    name = os.ttyname(slave)
    os.close(slave)
    yield master, name
    with contextlib.suppress(OSError):
        os.close(master)


def test_a_session_over_a_socket(serve: Callable[..., Server]) -> None:
    with open_board(serve(firmware()).url, None, f_cpu_hz=16_000_000, baud=BAUD) as board:
        link = Link(board, budget_s=10)
        assert link.hello(SHA256) == HELLO
        decision = link.decide(1, [1, 2, 3])
        assert decision.logits_crc == DECISION.logits_crc
        assert link.stats() == STATS
        timing = board.timing()
        sent_us = timing.request_end_us - timing.write_start_us
        assert sent_us >= 8 * 10e6 / BAUD - 0.01, "STATS is 8 bytes; their time is computed from the line rate"
        assert decision.round_trip_us > decision.response_us >= 0
        assert board.clock == "wall"
        assert board.stack_high_water_bytes() is None


def test_stale_bytes_are_drained_when_the_port_opens(serve: Callable[..., Server]) -> None:
    with SerialBoard(serve(firmware(), greeting=b"old \x00 news").url, baud=BAUD) as board:
        assert Link(board).hello(SHA256) == HELLO


def test_a_board_that_boots_is_waited_for(serve: Callable[..., Server]) -> None:
    with SerialBoard(serve(booting_firmware(3)).url, baud=BAUD) as board:
        link = Link(board)
        assert link.hello(SHA256) == HELLO
        assert link.counters.greetings == 4 and link.counters.retries == 0, (
            "three are swallowed, and the bootloader's last bytes spoil the first reply"
        )


def test_a_board_with_another_policy_is_refused(serve: Callable[..., Server]) -> None:
    with SerialBoard(serve(firmware()).url, baud=BAUD) as board, pytest.raises(WrongPolicy):
        Link(board).hello("cd" * 32)


def test_a_silent_board_names_the_usual_causes(serve: Callable[..., Server]) -> None:
    with SerialBoard(serve(lambda data: b"").url, baud=BAUD) as board, pytest.raises(NoAnswer, match="Arduino"):
        Link(board).hello(patience_s=0.05)


def test_a_connection_that_breaks_is_a_dead_board(serve: Callable[..., Server]) -> None:
    server = serve(firmware())
    with SerialBoard(server.url, baud=BAUD) as board:
        link = Link(board)
        link.hello()
        server.hang_up()
        with pytest.raises(BoardDied, match="port failed"):
            for _ in range(3):  # the first write may still be accepted
                link.stats()


@pytest.mark.filterwarnings("ignore:set.*deprecated:DeprecationWarning")  # in pyserial's client
def test_rfc2217() -> None:
    """Through a telnet server that speaks RFC 2217, with a looped-back port at its other side: what is sent comes back."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with serial.serial_for_url("loop://", timeout=0.01) as port, contextlib.suppress(OSError):
            connection, _ = listener.accept()

            class Sender:
                def write(self, data: bytes) -> None:
                    connection.sendall(data)

            manager = serial.rfc2217.PortManager(port, Sender())
            while True:
                if select.select([connection], [], [], 0.01)[0]:
                    data = connection.recv(1024)
                    if not data:
                        return
                    port.write(b"".join(manager.filter(data)))
                if waiting := port.in_waiting:
                    connection.sendall(b"".join(manager.escape(port.read(waiting))))

    threading.Thread(target=serve, daemon=True).start()
    try:
        with SerialBoard(f"rfc2217://127.0.0.1:{listener.getsockname()[1]}", baud=BAUD) as board:
            board.write(b"\xff\x01\x00")
            received = b""
            while not received.endswith(b"\x00"):
                data = board.read(board.now_us() + 10e6)
                assert data, "nothing came back"
                received += data
            assert received == b"\xff\x01\x00"
            board.drain()
    finally:
        listener.close()


def test_reads_end_at_a_frames_end_and_at_the_deadline() -> None:
    with SerialBoard("loop://", baud=BAUD) as board:
        board.write(b"\x01\x02\x00\x03")
        data = b""
        while not data.endswith(b"\x00"):
            data += board.read(board.now_us() + 10e6)
        assert data == b"\x01\x02\x00"
        assert board.read(board.now_us() + 10e6) == b"\x03"
        assert board.read(board.now_us()) == b""


def test_drain_empties_the_line() -> None:
    with SerialBoard("loop://", baud=BAUD) as board:
        board.write(b"\x01\x02\x00\x03")
        received = len(board.read(board.now_us() + 10e6))
        assert received + board.drain() == 4
        assert board.read(board.now_us()) == b""


def test_a_session_over_a_pseudo_terminal(pty_port: tuple[int, str]) -> None:
    """No modem lines there: a reset closes the port and opens it again."""
    master, name = pty_port
    respond = firmware()
    finished = threading.Event()

    def serve() -> None:
        while not finished.wait(0.001):
            with contextlib.suppress(OSError):  # while no program has the port open
                os.write(master, respond(os.read(master, 4096)))

    os.set_blocking(master, False)
    thread = threading.Thread(target=serve, daemon=True)
    with SerialBoard(name, baud=BAUD) as board:
        thread.start()
        link = Link(board, budget_s=10)
        assert link.hello(SHA256) == HELLO
        board.reset()
        assert link.decide(0, [5]).action == DECISION.action
        finished.set()
        thread.join()


def test_a_port_that_vanishes_is_a_dead_board(pty_port: tuple[int, str]) -> None:
    master, name = pty_port
    with SerialBoard(name, baud=BAUD) as board:
        os.close(master)
        with pytest.raises(BoardDied, match="cable"):
            board.read(board.now_us() + 1e6)


def test_a_port_in_use_names_its_holder(pty_port: tuple[int, str]) -> None:
    _, name = pty_port
    hold = "import serial, sys; p = serial.Serial(sys.argv[1], exclusive=True); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", hold, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None and holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(InputError, match=f"in use by another program.*process {holder.pid}"):
            SerialBoard(name, baud=BAUD).open()
        holder.stdin.close()
    with SerialBoard(name, baud=BAUD) as board:
        assert board.is_open, "a failed attempt does not keep the port"


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("/dev/tty-that-is-not-there", "there is no such port: .*(present|plugged in)"),
        ("no-such-scheme://x", "doesn't know this kind of URL"),
        ("/dev/null", "can't be opened as a serial port"),
    ],
)
def test_ports_that_cannot_be_opened(url: str, remedy: str) -> None:
    with pytest.raises(InputError, match=remedy) as caught:
        open_board(url, None, f_cpu_hz=16_000_000, baud=BAUD)
    assert str(caught.value).startswith(f"{url}: ")


def test_a_server_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        number = unused.getsockname()[1]
    with pytest.raises(InputError, match="is the server running"):
        SerialBoard(f"socket://127.0.0.1:{number}", baud=BAUD).open()


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("rfc2217://host", "names no port: rfc2217://HOST:PORT"),
        ("RFC2217://host:", "names no port: rfc2217://HOST:PORT"),
        ("rfc2217://:4000", "names no host: rfc2217://HOST:PORT"),
        ("rfc2217://host:0", "names no port: rfc2217://HOST:PORT"),
        ("rfc2217://host:70000", "must be rfc2217://HOST:PORT (Port out of range 0-65535)"),
        ("socket://host", "names no port: socket://HOST:PORT"),
        ("socket://", "names no host: socket://HOST:PORT"),
        ("socket://host:port", "must be socket://HOST:PORT ("),
        ("socket://[::1", "must be socket://HOST:PORT ("),
        ("hwgrep://(", "can't be opened"),
        ("hwgrep://no-such-thing", "can't be opened"),
        ("alt:///dev/null?class=none", "pyserial doesn't know this kind of URL"),
        ("spy:///dev/tty-that-is-not-there", "can't be opened"),
        ("loop://?logging=none", "can't be opened"),
        ("cp2110://0", ""),  # where the module hid is missing, pyserial doesn't know this kind
    ],
)
def test_urls_that_lead_nowhere_are_one_line(url: str, fault: str) -> None:
    with pytest.raises(InputError) as caught:
        open_board(url, None, f_cpu_hz=16_000_000, baud=BAUD)
    assert str(caught.value).startswith(f"{url}: {fault}") and "\n" not in str(caught.value)


@pytest.mark.parametrize("greeting", [b"", b"Port already in use\r\n"])
def test_a_server_that_ends_the_connection_at_once(greeting: bytes) -> None:
    """One line, every time."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    connection.sendall(greeting)
                    connection.shutdown(socket.SHUT_RDWR)
                    connection.close()

        threading.Thread(target=serve, daemon=True).start()
        url = f"socket://127.0.0.1:{listener.getsockname()[1]}"
        seen = set()
        for _ in range(10):
            try:
                board = open_board(url, None, f_cpu_hz=16_000_000, baud=BAUD)
            except InputError as fault:
                seen.add(str(fault))
                continue
            with board:
                fault = handshake_fault(Link(board), SHA256, Setting())
            assert fault is not None and "\n" not in fault and "cable" not in fault
        said = f", with {greeting.decode().strip()!a}" if greeting else ""  # which an early end may swallow
        assert seen and seen <= {
            f"{url}: the port was closed as soon as it was open{each}: is it in use there?" for each in ("", said)
        }


def test_a_connection_that_has_ended_when_the_port_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first read reveals it."""

    class Ended:
        timeout, baudrate = 0.0, 0
        in_waiting = 5

        def __init__(self) -> None:
            self.left = [b"busy\n"]
            self.closed = False

        def open(self) -> None:
            pass

        def close(self) -> None:
            self.closed = True

        def read(self, size: int) -> bytes:
            if not self.left:
                raise serial.SerialException("socket disconnected")
            return self.left.pop()

    port = Ended()
    monkeypatch.setattr(serial, "serial_for_url", lambda *_, **__: port)
    board = SerialBoard("socket://bench:5010", baud=BAUD)
    with pytest.raises(InputError, match="socket://bench:5010: the port was closed as soon as it was open, with 'busy': is it"):
        board.open()
    assert port.closed and not board.is_open


def test_a_board_that_dies_while_other_rates_are_tried(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    with SerialBoard(serve(firmware()).url, baud=BAUD) as board:

        def fail(rate: int) -> None:
            raise BoardDied("gone")

        monkeypatch.setattr(board, "set_line_rate", fail)
        assert answering_baud(board) is None


def test_permission_denied_names_the_group(monkeypatch: pytest.MonkeyPatch, pty_port: tuple[int, str]) -> None:
    def refuse(self: serial.Serial) -> None:
        raise serial.SerialException(errno.EACCES, "could not open port: Permission denied")

    monkeypatch.setattr(serial.Serial, "open", refuse)
    with pytest.raises(InputError, match="dialout"):
        SerialBoard(pty_port[1], baud=BAUD).open()


def test_a_closed_board_says_so() -> None:
    board = SerialBoard("loop://", baud=BAUD)
    with pytest.raises(RuntimeError, match="not open"):
        board.write(b"x")
    board.close()


class FoundPort:
    """What pyserial reports of a port."""

    def __init__(self, device: str, vid: int | None, pid: int | None) -> None:
        self.device, self.vid, self.pid, self.description = device, vid, pid, "USB thing"


UNO, CLONE, MODEM = (
    FoundPort("/dev/ttyACM1", 0x2341, 0x43),
    FoundPort("/dev/ttyUSB0", 0x1A86, 0x7523),
    FoundPort("/dev/m", 1, 2),
)


class TestFindingTheBoard:
    @pytest.fixture
    def present(self, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
        def be(*ports: FoundPort) -> None:
            monkeypatch.setattr("serial.tools.list_ports.comports", lambda: list(ports))

        return be

    def test_the_only_one_is_taken(self, present: Callable[..., None]) -> None:
        present(MODEM, UNO, FoundPort("/dev/ttyS0", None, None))
        assert str(find_port()) == "/dev/ttyACM1 (Arduino Uno)"
        present(CLONE)
        assert find_port().port == "/dev/ttyUSB0"

    def test_several_are_asked_about(self, present: Callable[..., None]) -> None:
        present(CLONE, UNO)
        with pytest.raises(
            InputError, match=r"several boards, so name one: /dev/ttyACM1 \(Arduino Uno\), /dev/ttyUSB0 \(CH340"
        ):
            find_port()
        assert find_port(lambda found: found[1]).port == "/dev/ttyUSB0"

    def test_none_says_what_is_there(self, present: Callable[..., None]) -> None:
        present(MODEM)
        with pytest.raises(InputError, match=r"no port looks like a board: the ports present are /dev/m \(USB thing\)"):
            find_port()
        present()
        with pytest.raises(InputError, match="is the board plugged in"):
            find_port()
