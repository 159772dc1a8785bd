"""The policy file of one intersection of a network, for a chip of its own."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from model.policy.file import load_policy, save_policy
from streetflow.errors import FieldError
from streetflow.near import or_else


def require_intersection(file: Path, intersection: str | None) -> int | None:
    """Its number in the policy of `file`, None for none. FieldError where the policy has no such intersection."""
    ids = [part.id for part in load_policy(file).intersections]
    if intersection is None:
        return None
    if intersection not in ids:
        raise FieldError("intersection", f"{file} has no {intersection!r}{or_else(intersection, ids)}")
    return ids.index(intersection)


@contextmanager
def policy_for(file: Path, intersection: str | None) -> Iterator[Path]:
    """`file`, or for a while a file with that intersection's policy alone. FieldError where the policy has no such one.

    It is the file that a run with a board for each intersection builds from, and so gives the same firmware, to the byte.
    """
    number = require_intersection(file, intersection)
    if number is None:
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="tinylight-") as folder:
        alone = Path(folder) / f"{intersection}.json"
        save_policy(load_policy(file).alone(number), alone)
        yield alone
