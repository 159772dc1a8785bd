"""`tinylight networks`: lists the available road networks."""

from rich.table import Table

from tinylight.commands.options import JsonOption
from tinylight.console import require_writable, show


def networks(json_file: JsonOption = None) -> None:
    """List the available road networks: the built-in ones, and those in the folders that TINYLIGHT_DATA names."""
    from model import pretrained_policies
    from streetflow.networks.catalogue import list_networks
    from tinylight.json_file import write_json

    require_writable(json_file)
    found = list_networks()
    table = Table()
    for heading in ("network", "source", "flows", "horizon s", "trained policy"):
        table.add_column(heading)
    rows = [
        {
            "network": entry.name,
            "source": entry.source,
            "flows": len(entry.flow_files),
            "horizon_s": entry.horizon_s,
            "trained_policy": entry.name in pretrained_policies(),
            "roadnet_file": str(entry.roadnet_file),
        }
        for entry in found
    ]
    for row in rows:
        cells = [row["network"], row["source"], row["flows"], row["horizon_s"], "yes" if row["trained_policy"] else "no"]
        table.add_row(*map(str, cells))
    show(table)
    if json_file is not None:
        write_json(rows, json_file)
