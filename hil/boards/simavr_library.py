"""Compiles the glue to simavr when it is first needed, and loads it.

The glue is an ordinary shared library with the plain interface of simavr_glue.h, which cffi opens; so it needs a C compiler
and simavr's headers, but neither Python's headers nor setuptools. It is kept in the user's cache folder under a hash of the
preprocessed source, which covers simavr's own headers: another simavr version makes another library.
"""

import functools
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from cffi import FFI

from streetflow.cache import cache_folder, cannot_cache
from streetflow.errors import InputError

SOURCES = [Path(__file__).with_name(name) for name in (
    "simavr_glue.c", "simavr_core.c", "simavr_decode.c", "simavr_line.c", "simavr_trace.c", "simavr_pins.c",
    "simavr_memo.c", "simavr_bench.c", "simavr_monitor.c",
)]  # fmt: skip
HEADERS = [Path(__file__).with_name(name) for name in ("simavr_glue.h", "simavr_bench.h")]
FLAGS = ("-std=gnu11", "-O2", "-fPIC")
NEEDS_COMPILER = "needs a C compiler: sudo apt install gcc libc6-dev"
NEEDS_SIMAVR = "needs simavr and its headers: sudo apt install libsimavr-dev"


@functools.cache
def simavr_library() -> tuple[FFI, Any]:
    """cffi's FFI with the glue's types, and the loaded library. InputError naming what to install if it can't be built."""
    ffi = FFI()
    for header in HEADERS:
        ffi.cdef(_declarations(header.read_text(encoding="utf-8")))
    library = build_library(cache_folder() / "simavr")
    try:
        return ffi, ffi.dlopen(str(library))
    except OSError as fault:
        raise InputError("simavr", "", f"{NEEDS_SIMAVR} ({fault})") from fault


def build_library(folder: Path) -> Path:
    """The compiled glue in `folder`, built if it is not there yet; safe with other processes doing the same.
    InputError where it can't be built or kept."""
    compiler = _compiler()
    preprocessed = _run([*compiler, *FLAGS, "-E", *map(str, SOURCES)])
    key = hashlib.sha256(b"\0".join((preprocessed, " ".join((*compiler, *FLAGS)).encode()))).hexdigest()[:16]
    library = folder / f"simavr_glue-{key}.so"
    if library.exists():
        return library
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(suffix=".so", dir=folder)
    except OSError as fault:
        raise cannot_cache(folder, fault) from None
    os.close(handle)
    try:
        _run([*compiler, *FLAGS, "-shared", "-o", temporary, *map(str, SOURCES), "-lsimavr"])
        os.replace(temporary, library)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return library


def _declarations(header: str) -> str:
    """The header as cffi reads it: without preprocessor lines."""
    return "\n".join(line for line in header.splitlines() if not line.startswith("#"))


def _compiler() -> list[str]:
    command = shlex.split(os.environ.get("CC", ""))
    if not command:
        command = [next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), "cc")]
    if shutil.which(command[0]) is None:
        raise InputError("simavr", "", NEEDS_COMPILER)
    return command


def _run(command: list[str]) -> bytes:
    done = subprocess.run(command, capture_output=True, env=os.environ | {"LC_ALL": "C"})
    if done.returncode == 0:
        return done.stdout
    complaint = done.stderr.decode(errors="replace").strip()
    first = next((line for line in complaint.splitlines() if "error" in line or "cannot find" in line), complaint)
    if "simavr/" in first or "-lsimavr" in first:
        raise InputError("simavr", "", NEEDS_SIMAVR)
    if "No such file" in first:
        raise InputError("simavr", "", f"{NEEDS_COMPILER} ({first})")
    raise InputError("simavr", ", ".join(source.name for source in SOURCES), f"does not compile: {first}")
