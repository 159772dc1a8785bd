"""Wheels and sdists, installed outside of the repository and used from an empty folder by a user who may write to neither.

What the packages depend on comes from the tests' own environment through a .pth file, which is fast and needs no network. That
pyproject.toml names all of it is seen where that environment is set up, by `make test`.
"""

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import pytest

import hil
import model
import streetflow
import tinylight
from streetflow import Engine
from tests.helpers import small_network
from tests.helpers.places import ROOT

KERNELS = ROOT / "streetflow" / "kernels"
PACKAGES = ("firmware", "hil", "model", "streetflow", "tinylight")
UNPRIVILEGED_ID = 65_534
ENGINE_PROGRAM = """
import sys

import streetflow as cityflow

engine = cityflow.Engine(sys.argv[1], thread_num=1)
for _ in range(60):
    engine.next_step()
print(engine.get_average_travel_time(), cityflow.__file__)
"""
PLUGIN_TEST = """
def test_my_policy(closed_loop):
    verdict = closed_loop()
    assert verdict.passed
    assert verdict.figures["latency"]["round_trip_us"]["max"] < 20_000
"""
TYPED_PROGRAM = """
import streetflow as cityflow
from firmware.generator.policy import read_policy
from hil.loop.job import Job
from hil.pytest_plugin import closed_loop
from model import pretrained_policy
from tinylight.exit_codes import FAILED

reveal_type(cityflow.Engine("config.json").get_average_travel_time())
reveal_type(read_policy(pretrained_policy("crossing")))
reveal_type(Job.named("crossing", 0, None).baud)
reveal_type(FAILED)
"""


class Built(NamedTuple):
    sdist: Path
    wheel: Path


def build(project: Path, out: Path, *targets: str) -> list[Path]:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out), *(f"-t{target}" for target in targets)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(out.iterdir())


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return Built(*reversed(build(ROOT, tmp_path_factory.mktemp("whole"))))


@pytest.fixture(scope="module")
def engine_alone(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return Built(*reversed(build(ROOT / "streetflow", tmp_path_factory.mktemp("engine"))))


def install(wheel: Path, folder: Path) -> Path:
    """The Python of a fresh environment with the wheel and this environment's other packages."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", "--no-compile", str(wheel)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    others = [place for place in sys.path if Path(place).name in ("site-packages", "dist-packages")]
    (packages / "others.pth").write_text("\n".join(others) + "\n")
    for file in KERNELS.glob("*.py"):
        os.utime(packages / file.relative_to(ROOT), ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    subprocess.run([python, "-m", "compileall", "-q", *(packages / name for name in PACKAGES)], check=True)
    return python


def bring_compiled_kernels(stranger: "Stranger") -> None:
    """Spares the stranger half a minute: the tests' own machine code, in the folder that the stranger made for it. Numba knows
    it by the name, size and time of its source, so it compiles anew what isn't the same."""
    stranger.run("python", "-c", "import streetflow; streetflow.Engine")
    (folder,) = stranger.folder.glob(f"tmp/tinylight-hil-*/kernels/{KERNELS.name}_*")
    for file in (KERNELS / "__pycache__").glob("*.nb[ic]"):
        shutil.copyfile(file, folder / file.name)


class Stranger(NamedTuple):
    """A user with the wheel installed by another, in an empty folder, with a home folder that can't be written to."""

    folder: Path
    python: Path
    become: list[str]

    def run(self, program: str, *arguments: str) -> str:
        """What a program of the installed environment prints. It has to pass."""
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "COLUMNS": "200"}
        environment |= {"HOME": str(self.folder / "home"), "TMPDIR": str(self.folder / "tmp")}
        command = [*self.become, str(self.python.with_name(program)), *arguments]
        done = subprocess.run(command, cwd=self.folder / "empty", env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def becoming_a_stranger(python: Path) -> list[str]:
    """How this user, if it is root, becomes one who may not write everywhere: another user where that one may run this Python,
    and otherwise root without its right to ignore who may write where."""
    if os.getuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root needs setpriv (util-linux) to become another user")
    other = ["setpriv", f"--reuid={UNPRIVILEGED_ID}", f"--regid={UNPRIVILEGED_ID}", "--clear-groups"]
    able = subprocess.run([*other, str(python), "-c", "import numba, platformio"], capture_output=True).returncode == 0
    return other if able else ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]


def forbid_writing(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)


@pytest.fixture(scope="module")
def stranger(whole: Built) -> Iterator[Stranger]:
    folder = Path(tempfile.mkdtemp(prefix="tinylight-stranger-"))  # pytest's own folders are closed to others
    try:
        folder.chmod(0o755)
        python = install(whole.wheel, folder / "venv")
        for name in ("home", "empty"):
            (folder / name).mkdir()
        (folder / "tmp").mkdir()
        (folder / "tmp").chmod(0o777)
        for name in ("venv", "home", "empty"):
            forbid_writing(folder / name)
        found = Stranger(folder, python, becoming_a_stranger(python))
        bring_compiled_kernels(found)
        yield found
        assert list((folder / "empty").iterdir()) == [] and list((folder / "home").iterdir()) == []
    finally:
        for path in (folder / "venv", *(folder / "venv").rglob("*")):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o755)
        shutil.rmtree(folder)


# What is in them


def test_the_wheel_holds_all_packages_and_nothing_else(whole: Built) -> None:
    names = set(contents(whole.wheel))
    assert {name.partition("/")[0] for name in names} == {*PACKAGES, f"tinylight_hil-{streetflow.__version__}.dist-info"}
    tracked = subprocess.run(["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True)
    assert tracked.returncode == 0, tracked.stderr
    apart = {"streetflow/pyproject.toml", "streetflow/README.md", "streetflow/LICENSE", "tinylight/README.md"}
    assert set(tracked.stdout.split()) - apart | {"firmware/platformio.ini"} <= names
    assert not apart & names and {f"{package}/py.typed" for package in PACKAGES} <= names


def test_the_sdist_makes_the_same_wheel(whole: Built, tmp_path: Path) -> None:
    shutil.unpack_archive(whole.sdist, tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    assert (source / "conftest.py").is_file() and (source / "tests" / "packages").is_dir()
    (again,) = build(source, tmp_path / "out", "wheel")
    assert contents(again) == contents(whole.wheel)


def test_the_engines_sdist_makes_the_same_wheel(engine_alone: Built, tmp_path: Path) -> None:
    shutil.unpack_archive(engine_alone.sdist, tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    (again,) = build(source, tmp_path / "out", "wheel")
    assert contents(again) == contents(engine_alone.wheel)


def test_the_engines_wheel_holds_the_engine_alone(whole: Built, engine_alone: Built) -> None:
    alone = {name: content for name, content in contents(engine_alone.wheel).items() if name.startswith("streetflow/")}
    assert alone == {name: content for name, content in contents(whole.wheel).items() if name.startswith("streetflow/")}
    metadata = metadata_of(engine_alone.wheel)
    assert sorted(each.partition(">")[0] for each in metadata.get_all("Requires-Dist", [])) == ["numba", "numpy"]
    assert "import streetflow as cityflow" in str(metadata.get_payload())


def metadata_of(wheel: Path) -> Message:
    (name,) = (name for name in contents(wheel) if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(contents(wheel)[name].decode())


def test_one_version_and_one_licence(whole: Built, engine_alone: Built) -> None:
    assert {metadata_of(built.wheel)["Version"] for built in (whole, engine_alone)} == {streetflow.__version__}
    assert version("tinylight-hil") == streetflow.__version__, "this environment's: make setup again"
    assert f"version: {streetflow.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert (ROOT / "streetflow" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert {package.__version__ for package in (hil, model, tinylight)} == {streetflow.__version__}


def test_what_an_index_shows_points_to_nothing_that_it_lacks(whole: Built, engine_alone: Built) -> None:
    """Pages and pictures of the repository are not beside it."""
    for built in (whole, engine_alone):
        text = str(metadata_of(built.wheel).get_payload())
        assert all(target.startswith("http") for target in re.findall(r"\]\(([^)]*)", text))
        assert "docs/" not in text and "pio run" not in text


# Used by a stranger


def test_the_main_job_by_a_stranger(stranger: Stranger) -> None:
    output = stranger.run("tinylight", "hil", "--network", "crossing", "--board", "simavr")
    assert output.rstrip().endswith("PASS") and "3,830" in output and "firmware_commit unknown" in output


def test_the_host_build_by_a_stranger(stranger: Stranger) -> None:
    output = stranger.run("tinylight", "hil", "--network", "crossing", "--board", "host", "--budget", "10")
    assert output.rstrip().endswith("PASS")


def test_other_commands_by_a_stranger(stranger: Stranger) -> None:
    assert "flash 9996 of 32256 B" in stranger.run("tinylight", "size")
    assert "SOTL" in stranger.run("tinylight", "evaluate", "--network", "crossing", "--agent", "SOTL", "--flows", "0")
    page = stranger.folder / "tmp" / "page.html"
    stranger.run("tinylight", "replay", "--network", "crossing", "--agent", "SOTL", "--out", str(page))
    assert page.stat().st_size > 100_000


def test_the_plugin_by_a_stranger(stranger: Stranger) -> None:
    test = stranger.folder / "test_mine.py"
    test.write_text(PLUGIN_TEST)
    output = stranger.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--hil=simavr", str(test))
    assert "1 passed" in output and "simavr" in output


def test_the_engine_by_a_stranger(stranger: Stranger) -> None:
    config = small_config(stranger.folder / "files")
    travel_time, place = stranger.run("python", "-c", ENGINE_PROGRAM, str(config)).split()
    assert Path(place).is_relative_to(stranger.folder) and float(travel_time) == travel_time_here(config)


def small_config(folder: Path) -> Path:
    roadnet = small_network.grid()
    return small_network.write(folder, roadnet, small_network.demand(roadnet, 12, 60))


def travel_time_here(config: Path) -> float:
    engine = Engine(str(config), thread_num=1)
    for _ in range(60):
        engine.next_step()
    return engine.get_average_travel_time()


def test_the_engine_alone(engine_alone: Built, tmp_path: Path) -> None:
    """Without the compiler, which would take half a minute for the same figure."""
    python, config = install(engine_alone.wheel, tmp_path / "venv"), small_config(tmp_path / "files")
    done = subprocess.run(
        [python, "-c", ENGINE_PROGRAM, str(config)],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    travel_time, place = done.stdout.split()
    assert Path(place).is_relative_to(tmp_path / "venv") and float(travel_time) == travel_time_here(config)


def test_mypy_sees_the_types_of_all_packages(stranger: Stranger, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(TYPED_PROGRAM)
    options = ["--python-executable", str(stranger.python), "--cache-dir", str(ROOT / ".mypy_cache" / "installed")]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(program)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for revealed in ("float", "dict[str, Any]", "int"):
        assert f'Revealed type is "{revealed}"' in done.stdout
