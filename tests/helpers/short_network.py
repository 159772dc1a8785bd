"""The built-in crossing as a data set with a shorter horizon, for tests whose claim doesn't need an hour of traffic."""

import json
from pathlib import Path

from streetflow.networks.catalogue import find_network

SHORT = "short"


def write_short_crossing(data: Path, horizon_s: int, flows: int = 1) -> None:
    """Makes it the network `short` of the folder `data`, which TINYLIGHT_DATA has to name."""
    source, folder = find_network("crossing"), data / SHORT
    folder.mkdir(parents=True)
    for file in (source.roadnet_file, *source.flow_files[:flows]):
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "network.json").write_text(json.dumps({"horizon_s": horizon_s}))
