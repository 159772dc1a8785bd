"""Sizes as a table, and what has changed since an earlier measurement."""

from pathlib import Path
from typing import Any

from rich.table import Table

from streetflow.errors import InputError
from streetflow.roadnet.json_reader import read_json

Sizes = dict[str, Any]  # hil.build.footprint.Footprint.as_dict()
COLUMNS = (("flash_bytes", "flash B"), ("static_ram_bytes", "static RAM B"))


def read_sizes(file: Path) -> Sizes:
    """Reads a file that `tinylight size --json` has written. InputError for anything else."""
    sizes = read_json(file, exact=True)
    for key in ("flash_bytes", "static_ram_bytes", "per_object", "per_symbol"):
        if not isinstance(sizes, dict) or key not in sizes:
            raise InputError(file, key, "missing: not a file that `tinylight size --json` has written")
    return sizes


def size_table(now: Sizes, before: Sizes | None, title: str, parts: str) -> Table:
    """One row per object or symbol (`parts`: "per_object" or "per_symbol"), largest first; with `before`, also the changes and
    the parts that are gone."""
    table = Table(title=title, title_justify="left")
    table.add_column("object" if parts == "per_object" else "symbol", overflow="fold")
    for _, heading in COLUMNS:
        table.add_column(heading, justify="right")
        if before is not None:
            table.add_column("change", justify="right")
    old = {} if before is None else before[parts]
    for name in sorted(now[parts] | old, key=lambda name: (-now[parts].get(name, {}).get("flash_bytes", 0), name)):
        table.add_row(name, *_figures(now[parts].get(name, {}), None if before is None else old.get(name, {})))
    table.add_section()
    table.add_row("all", *_figures(now, before))
    return table


def _figures(now: Sizes, before: Sizes | None) -> list[str]:
    cells = []
    for key, _ in COLUMNS:
        size = int(now.get(key, 0))
        cells.append(str(size))
        if before is not None:
            change = size - int(before.get(key, 0))
            cells.append(f"{change:+d}" if change else "")
    return cells
