"""docs/quickstart.ipynb runs, from an empty folder, and prints what it shows.

To renew the outputs that it shows: python -m tests.test_quickstart
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.places import ROOT
from tests.helpers.processes import with_path

NOTEBOOK = ROOT / "docs" / "quickstart.ipynb"
# Runs the cells in one namespace, each with its output apart.
RUN = """
import contextlib, io, json, sys
names, outputs = {}, []
for cell in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(cell, names)
    outputs.append(printed.getvalue())
json.dump(outputs, sys.stdout)
"""


def code_cells() -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def printed(folder: Path) -> list[str]:
    """What each code cell prints."""
    sources = json.dumps(["".join(cell["source"]) for cell in code_cells()])
    run = subprocess.run(
        [sys.executable, "-c", RUN], input=sources, cwd=folder, env=with_path(), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    outputs: list[str] = json.loads(run.stdout)
    return outputs


@pytest.mark.hil
def test_the_notebook_prints_what_it_shows(tmp_path: Path) -> None:
    shown = ["".join(text for output in cell["outputs"] for text in output["text"]) for cell in code_cells()]
    assert printed(tmp_path) == shown


def test_it_is_short() -> None:
    lines = [line for cell in code_cells() for line in cell["source"] if line.strip()]
    assert len(lines) <= 15


def renew() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    outputs = iter(printed(ROOT))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            text = next(outputs).splitlines(keepends=True)
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": text}]
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    renew()
