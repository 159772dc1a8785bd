"""The whole path, as a new user takes it: a board on a port, a real avrdude, and `pytest --hil=PORT`; over the network as well.

The same test file passes on the emulated chip (`make test`), the host build, the port and RFC 2217 to it. The budget of a
decision is wide here: this is about what happens, on a machine that may be busy, not about how fast.
"""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.boards import SerialBoard
from hil.boards.port_server import PortServer
from hil.build.project import project_root
from hil.wire.link import Link
from model import pretrained_policy
from model.policy.file import load_policy
from tests.helpers.pio import pio_run

PATIENCE_S = 60.0
FILE = "tests/hil/test_on_board.py"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`tinylight board` with nothing but its bootloader."""
    link = tmp_path_factory.mktemp("board") / "uno"
    command = [sys.executable, "-m", "tinylight.cli", "board", "--link", str(link)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=project_root()) as process:
        assert process.stdout is not None
        assert f"Arduino Uno at {link}" in process.stdout.readline()
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield str(link)
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    assert not link.is_symlink()


def passes_on(board: str, *some: str, passed: str = r"1\d") -> None:
    options = ["-q", "-p", "no:cacheprovider", "--hil-budget=10", f"--hil={board}", FILE, *some]
    done = subprocess.run([sys.executable, "-m", "pytest", *options], cwd=project_root(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert re.search(rf"\b{passed} passed", done.stdout) and "skipped" not in done.stdout


@pytest.fixture(scope="module")
def flashed(port: str) -> str:
    command = [sys.executable, "-m", "tinylight.cli", "flash", "--board", port, "--network", "crossing"]
    for _ in range(3):  # as one would on a desk: on a machine too busy for real time avrdude may lose step
        done = subprocess.run(command, capture_output=True, text=True, cwd=project_root())
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    sha256 = load_policy(pretrained_policy("crossing")).sha256
    assert "read back and equal" in done.stdout and f"the board answers at 115200 baud with policy {sha256[:12]}" in done.stdout
    return port


def test_flashed_by_avrdude_the_tests_pass(flashed: str) -> None:
    passes_on(flashed)


def test_the_same_tests_over_rfc2217(flashed: str) -> None:
    server = PortServer(flashed, "127.0.0.1", 0)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        passes_on(server.url, "-k", "test_it_says_who_it_is or test_the_closed_loop", passed="2")
    finally:
        server.stop()
        thread.join()


def test_the_same_tests_on_the_host_build() -> None:
    passes_on("host")


def test_platformio_uploads(port: str, tmp_path: Path) -> None:
    policy = pretrained_policy("arterial")
    done = pio_run(
        ["-e", "uno_system", "-t", "upload", "--upload-port", port],
        tmp_path,
        TINYLIGHT_POLICY=str(policy),
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    with SerialBoard(port, baud=115_200) as board:
        Link(board, budget_s=10).hello(load_policy(policy).sha256, patience_s=PATIENCE_S)


def test_platformio_takes_no_port_that_is_not_a_boards(tmp_path: Path) -> None:
    """It would take any, and need a minute to find that no board answers; here none is named, and there is no board."""
    done = pio_run(["-e", "uno_system", "-t", "upload"], tmp_path)
    assert done.returncode != 0 and "no port looks like a board" in done.stderr and "--upload-port PORT" in done.stderr


def test_a_programmer_erases_the_chip_and_a_bootloader_does_not(tmp_path: Path) -> None:
    """The options that PlatformIO would give avrdude for a bare chip and for an Uno."""
    options = tmp_path / "options"
    avrdude = tmp_path / "avrdude"
    avrdude.write_text(f'#!/bin/sh\necho "$@" >> {options}\n')
    avrdude.chmod(0o755)
    for target, extra in (("bare_8mhz", []), ("uno_system", ["--upload-port", "/dev/null"])):
        path = f"{tmp_path}:{os.environ['PATH']}"
        done = pio_run(["-e", target, "-t", "upload", *extra], tmp_path, PATH=path, TINYLIGHT_BAUD="38400")
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    bare, uno = options.read_text().splitlines()
    assert "-c usbasp" in bare and "-D" not in bare.split() and "-P" not in bare.split()
    assert "-c arduino" in uno and "-D" in uno.split() and "-b 115200" in uno and "-P /dev/null" in uno
