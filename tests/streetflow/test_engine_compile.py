"""Compiling: reported once, on a terminal, and only of what is used."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import sys
from pathlib import Path

import pytest
from numba import njit

from streetflow.kernels import jit
from tests.helpers.small_network import line, write


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def compile_something() -> None:
    add = njit(lambda x: x + 1)  # not kept on disk
    jit._notice.entry_points.add(add)
    assert add(1) == 2


@pytest.mark.parametrize(("stream", "shown"), [(Terminal, True), (io.StringIO, False)])
def test_the_notice_is_shown_once_and_only_on_a_terminal(
    stream: type[io.StringIO], shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit._notice, "is_shown", False)
    monkeypatch.setattr(sys, "stderr", stream())
    compile_something()
    compile_something()
    text = sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert text.count("\n") == text.count("compiling the engine") == int(shown)


def test_other_sources_never_share_a_file_of_compiled_code(tmp_path: Path) -> None:
    """Otherwise processes that run two versions at once, as during an update, may each load the other's code."""
    (tmp_path / "some_kernel.py").write_text("def add(x):\n    return x + 1\n")
    spec = importlib.util.spec_from_file_location("some_kernel", tmp_path / "some_kernel.py")
    assert spec is not None and spec.loader is not None
    kept: list[set[Path]] = []
    for version in ("1", "2"):
        (tmp_path / "helper.py").write_text(f"CONSTANT = {version}\n")
        jit.source_fingerprint.cache_clear()
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert jit.entry_point(module.add)(1) == 2
        kept.append(set((tmp_path / "__pycache__").glob("*.nb*")))
    assert sorted(each.suffix for each in kept[0]) == sorted(each.suffix for each in kept[1] - kept[0]) == [".nbc", ".nbi"]


def test_lane_changing_costs_nothing_where_it_is_off(tmp_path: Path) -> None:
    config = write(tmp_path, line(), [])
    code = (
        "import sys, streetflow; streetflow.Engine(sys.argv[1]).step_many(3);"
        "sys.exit(any(f'streetflow.kernels.lane_{name}' in sys.modules for name in ('change', 'step', 'action', 'segments')))"
    )
    assert subprocess.run([sys.executable, "-c", code, str(config)], check=False).returncode == 0
