"""Which tests can differ between a machine with the data sets and a stranger's clone, which has none: for `--stranger`.

A test file can differ if it, or a module that it imports over however many others (functions' imports too), reads where data
lie; or if it, or a helper of the tests, runs what imports can't show: this project's command or pytest in a process, or code
that lies in a file.
"""

import re
from collections.abc import Iterable

import grimp

from tests.helpers.places import ROOT

PACKAGES = ("tests", "streetflow", "model", "hil", "tinylight", "firmware")
READS = re.compile(r"\bTINYLIGHT_(?:DATA|SHARED)\b")
RUNS = re.compile(r"""["']tinylight(?:\.\w+)*["']|["']pytest["']|\bpytester\b|\bexec\(|\brunpy\b""")


def strangers_tests() -> set[str]:
    """Names of the modules of tests that can differ, such as tests.model.test_table."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    sources = {module: _source(module) for module in graph.modules}
    reach = {module for module, source in sources.items() if READS.search(source) or _runs_what_imports_hide(module, source)}
    return {module for module in _tests(graph.modules) if {module, *graph.find_upstream_modules(module)} & reach}


def _tests(modules: Iterable[str]) -> list[str]:
    return [module for module in modules if module.startswith("tests.") and module.rpartition(".")[2].startswith("test_")]


def _runs_what_imports_hide(module: str, source: str) -> bool:
    return module.startswith("tests.") and RUNS.search(source) is not None


def _source(module: str) -> str:
    """Of a module in this repository. The graph has packages, too, that are folders without an __init__.py."""
    path = ROOT.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file.read_text(encoding="utf-8") if file.is_file() else ""
