"""What README and docs name exists: files of the repository, modules that are run, links and their anchors."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.places import ROOT

FOLDERS = ("streetflow", "model", "hil", "tinylight", "firmware", "tests", "docs", "scripts", "benchmarks")
PAGES = sorted(
    file.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "tests/**/*.md")
    for file in ROOT.glob(pattern)
    if "node_modules" not in file.parts
)
PATH = re.compile(rf"(?<![\w./-])(?:(?:\.\./)+|(?:{'|'.join(FOLDERS)})/)[\w./-]*[\w/]")
SOURCE = re.compile(r"(?<![\w./-])[\w./-]+\.(?:py|c|h|S)(?![\w-])")
MODULE = re.compile(r"python3? -m ([\w.]+)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
BARE_WORDS = {"model.py", "my_agent.py"}  # files of the reader's own


def sources() -> Iterator[str]:
    for folder in FOLDERS:
        yield from (f"/{file.relative_to(ROOT).as_posix()}" for file in (ROOT / folder).rglob("*") if file.is_file())


SOURCES = [path for path in sources() if "node_modules" not in path and "__pycache__" not in path]


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings get, as GitHub and mkdocs make them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def faults(page: Path) -> list[str]:
    text = page.read_text()
    code = "\n".join(CODE.findall(text))
    found = [f"no such path: {path}" for path in PATH.findall(code) if not exists(page, path)]
    named = [name for name in SOURCE.findall(code) if name not in BARE_WORDS]
    found += [f"no such source file: {name}" for name in named if not any(each.endswith(f"/{name}") for each in SOURCES)]
    found += [f"no such module: {name}" for name in MODULE.findall(text) if not is_module(name)]
    for link in LINK.findall(text):
        target, _, anchor = link.partition("#")
        if re.match(r"\w+:", target):
            continue
        file = page.parent / target if target else page
        if not file.exists():
            found.append(f"dead link: {link}")
        elif anchor and anchor not in anchors(file):
            found.append(f"no such heading: {link}")
    return found


def exists(page: Path, path: str) -> bool:
    """True too for a path outside of this repository, and for a stem to which a program adds its suffixes."""
    file = (page.parent if path.startswith("..") else ROOT) / path
    return not file.resolve().is_relative_to(ROOT) or file.exists() or any(file.parent.glob(f"{file.name}.*"))


def is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("page", PAGES)
def test_all_that_a_page_names_exists(page: str) -> None:
    assert faults(ROOT / page) == []


def test_pages_are_found_and_each_kind_of_fault_is_seen(tmp_path: Path) -> None:
    assert {"README.md", "docs/design.md", "docs/results/README.md", "tests/golden/README.md"} <= set(PAGES)
    page = tmp_path / "page.md"
    page.write_text(
        "# A head: of `mine`\n\nsee `hil/nowhere.py`, `src/nothing.c`, `docs/results/table1`, [a](b.md), [x](#no), "
        "[y](#a-head-of-mine)\n```sh\npython -m model.nothing; cat docs/design.md docs/results/table\n```\n"
    )
    assert faults(page) == [
        "no such path: hil/nowhere.py",
        "no such path: docs/results/table",
        "no such source file: hil/nowhere.py",
        "no such source file: src/nothing.c",
        "no such module: model.nothing",
        "dead link: b.md",
        "no such heading: #no",
    ]
