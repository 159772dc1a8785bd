"""The file that a training writes every few episodes, to resume from: a dictionary that PyTorch loads without running code."""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import torch

from streetflow.errors import InputError
from streetflow.files import written_aside

CHECKPOINT_KEYS = {"identity", "episode", "rows", "learners", "best"}


def save_checkpoint(path: Path, state: Mapping[str, Any]) -> None:
    """Writes the file atomically: a process stopped meanwhile leaves the earlier one."""
    with written_aside(path) as aside:
        torch.save(dict(state), aside)


def load_checkpoint(path: Path, identity: Mapping[str, Any], keys: Set[str] = CHECKPOINT_KEYS) -> dict[str, Any]:
    """The file's content. InputError where it can't be read, is not a checkpoint, or belongs to a run of another `identity`."""
    try:
        saved = torch.load(path, weights_only=True)
    except OSError as error:
        raise InputError(path, "", f"can't be read: {error.strerror or error}") from None
    except Exception as error:  # torch raises what unpickling happens to raise
        raise InputError(path, "", f"not a training checkpoint: {type(error).__name__}") from None
    if not isinstance(saved, dict) or not saved.keys() >= keys or not isinstance(saved["identity"], dict):
        raise InputError(path, "", "not a training checkpoint")
    for name, value in identity.items():
        if saved["identity"].get(name) != value:
            difference = f"the checkpoint has {saved['identity'].get(name)}, this run {value}"
            raise InputError(path, name, f"{difference}: delete it to start afresh, or repeat the command that left it")
    return saved
