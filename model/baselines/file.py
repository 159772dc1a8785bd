"""Weights of a trained baseline in a file: numpy's npz, with a JSON header as the array `header`.

The header holds format, version, model, network, clearance, decision interval, provenance and the SHA-256 of all the rest, so
that a damaged or edited file is refused. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from model.baselines.registry import BASELINES
from streetflow.errors import InputError
from streetflow.files import require_writable, written_aside
from streetflow.near import or_else

FORMAT, VERSION = "tinylight-baseline", 1
HEADER = "header"
FIELDS = {"model": str, "network": str, "clearance": str, "decision_interval_s": int, "provenance": dict}


@dataclass(frozen=True)
class BaselineFile:
    """One trained baseline for one network."""

    model: str
    network: str
    clearance: str
    decision_interval_s: int
    arrays: dict[str, npt.NDArray[np.generic]]
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """Over header fields and arrays, in a canonical order."""
        digest = hashlib.sha256(json.dumps(self.header(), sort_keys=True).encode())
        for name, array in sorted(self.arrays.items()):
            digest.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def header(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": VERSION} | {name: getattr(self, name) for name in FIELDS}


def save_baseline(content: BaselineFile, file: Path) -> None:
    """Writes the file whole or not at all. InputError where it can't be written, such as over a device."""
    require_writable(file)
    header = json.dumps(content.header() | {"sha256": content.sha256}, sort_keys=True)
    with written_aside(file) as aside, aside.open("wb") as stream:
        np.savez(stream, **{HEADER: np.array(header)}, **content.arrays)  # type: ignore[arg-type]


def is_baseline_file(file: Path) -> bool:
    """Whether the file begins like a weights file: an npz is a zip archive, a policy file is JSON."""
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        return stream.read(2) == b"PK"


def load_baseline(file: Path) -> BaselineFile:
    """Reads the file. InputError with the fault if it isn't a valid file of this version."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except OSError as error:
        raise InputError(file, "", f"can't be read: {error.strerror or error}") from None
    except (ValueError, zipfile.BadZipFile, EOFError, KeyError) as error:
        raise InputError(file, "", f"not a weights file: {error}") from None
    try:
        header = json.loads(str(arrays.pop(HEADER)))
        claimed = {name: header[name] for name in ("format", "version", "sha256", *FIELDS)}
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(file, HEADER, f"not a weights file: {error!r} is missing or faulty") from None
    if (claimed["format"], claimed["version"]) != (FORMAT, VERSION):
        raise InputError(file, f"{HEADER}.version", f"{claimed['format']} {claimed['version']}, not {FORMAT} {VERSION}")
    for name, kind in FIELDS.items():
        if not isinstance(claimed[name], kind):
            raise InputError(file, f"{HEADER}.{name}", f"{claimed[name]!r} is not of type {kind.__name__}")
    if claimed["model"] not in BASELINES:
        raise InputError(file, f"{HEADER}.model", f"unknown model {claimed['model']!r}{or_else(claimed['model'], BASELINES)}")
    content = BaselineFile(arrays=arrays, **{name: claimed[name] for name in FIELDS})
    if content.sha256 != claimed["sha256"]:
        raise InputError(file, f"{HEADER}.sha256", "doesn't fit the content: the file was changed or damaged")
    if not all(np.isfinite(array).all() for array in arrays.values() if array.dtype.kind == "f"):
        raise InputError(file, "", "holds weights that are not finite numbers")
    return content
