"""Private names stay in their file: no ``x._name`` of something that another file defines, no import of ``_name``."""

from __future__ import annotations

import ast

import pytest

from tests.helpers.places import ROOT

PACKAGES = ("streetflow", "model", "hil", "tinylight")
PUBLIC = {"_replace", "_asdict", "_fields", "_make"}  # of named tuples, which keep their other names free
JUSTIFIED = {
    ("hil/pytest_plugin.py", "_tw"): "pytest's only way to the terminal that it writes to",
    ("hil/pytest_plugin.py", "_id"): "of pytest's tests: what pytest-xdist's own mark for groups sets",
    ("hil/pytest_plugin.py", "_nodeid"): "the same before pytest 9.2",
    ("model/report/processes.py", "_exit"): "of os: documented, without cleaning up",
    ("tinylight/entry.py", "_exit"): "of os: documented, without cleaning up",
}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in PUBLIC


def defined_names(tree: ast.AST) -> set[str]:
    """Functions, classes, fields and attributes of ``self`` that the file itself defines."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) in ("self", "cls"):
            names.add(node.attr)
    return names


def strangers(source: str) -> list[tuple[int, str]]:
    """(line, name) of every private name of another file's that this one uses."""
    tree = ast.parse(source)
    own = defined_names(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if ast.unparse(node.value) not in ("self", "cls", "super()") and node.attr not in own:
                found.append((node.lineno, node.attr))
        elif isinstance(node, ast.ImportFrom):
            found += [(node.lineno, alias.name) for alias in node.names if is_private(alias.name)]
    return found


def test_no_file_uses_anothers_private_names() -> None:
    files = [file.relative_to(ROOT) for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    used = {(str(file), name, line) for file in files for line, name in strangers((ROOT / file).read_text(encoding="utf-8"))}
    assert len(files) > 150
    assert [f"{file}:{line}: {name}" for file, name, line in sorted(used) if (file, name) not in JUSTIFIED] == []
    assert {(file, name) for file, name, _ in used} == set(JUSTIFIED), "exceptions that nothing needs any more"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("engine._tables.state", ["_tables"]),
        ("class A:\n    def f(self):\n        return self._engine._tables", ["_tables"]),
        ("from streetflow.kernels.action import _take_out", ["_take_out"]),
        ("class A:\n    _x = 1\n    def f(self, other):\n        return other._x == self._x", []),
        ("class B(A):\n    def f(self):\n        return super()._f() + self._g + row._replace(a=1) + A.__name__", []),
    ],
)
def test_what_counts_as_anothers(source: str, found: list[str]) -> None:
    assert [name for _, name in strangers(source)] == found
