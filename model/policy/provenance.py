"""The provenance of results: the version of this tool, and the hashes of the input files."""

import hashlib
from importlib import metadata
from pathlib import Path

from streetflow.networks.catalogue import Network


def tool_version() -> str:
    """Version of this package, or "unknown" when it runs without being installed."""
    try:
        return metadata.version("tinylight-hil")
    except metadata.PackageNotFoundError:
        return "unknown"


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def input_hashes(network: Network, flow: int) -> dict[str, str]:
    """SHA-256 of the two files that a training reads."""
    return {"roadnet_sha256": file_sha256(network.roadnet_file), "flow_sha256": file_sha256(network.flow_file(flow))}
