"""Which instructions the emulated chip has executed: kept for each program in the folder that TINYLIGHT_EXECUTED names.

For tests/firmware/coverage.py. Each program's ELF file is copied there under its hash; beside it lie the marks, a byte a word
of flash, of all runs of that program together.
"""

import fcntl
import hashlib
import os
from pathlib import Path

FOLDER = "TINYLIGHT_EXECUTED"
WORDS = 32_768  # of the address space; the flash has half of them


def executed_folder() -> Path | None:
    """None: nobody asks."""
    name = os.environ.get(FOLDER)
    return Path(name) if name else None


def keep_executed(elf: Path, marks: bytes) -> None:
    """Adds one run's marks to those of the program's other runs; other processes may do so at the same time."""
    folder = executed_folder()
    assert folder is not None
    folder.mkdir(parents=True, exist_ok=True)
    content = elf.read_bytes()
    stem = folder / hashlib.sha256(content).hexdigest()[:16]
    with stem.with_suffix(".marks").open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        before = file.read() or bytes(WORDS)
        file.truncate(0)
        file.write(bytes(a | b for a, b in zip(before, marks, strict=True)))
        stem.with_suffix(".elf").write_bytes(content)
