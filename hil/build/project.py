"""The PlatformIO project that the firmware is built in: the checkout, or a copy of what is installed.

PlatformIO writes beside its project, and an installed package may lie where its user must not write. So an installed package's
project is laid out in the cache, in a folder named after its content.
"""

import hashlib
import os
from pathlib import Path

import firmware
from streetflow.cache import cache_folder, cached_folder
from streetflow.errors import InputError

PACKAGE = Path(firmware.__file__).resolve().parent
SOURCES = PACKAGE.parent  # the checkout, or site-packages


def checkout() -> Path | None:
    """The checkout's root; None for an installed package, and for a checkout that this user must not write to."""
    return SOURCES if (SOURCES / "platformio.ini").is_file() and os.access(SOURCES, os.W_OK) else None


def project_root() -> Path:
    """The folder with platformio.ini and firmware/ to build in. InputError where none can be made."""
    if (root := checkout()) is not None:
        return root
    files = project_files()
    return cached_folder(cache_folder() / "project" / content_hash(files)[:16], lambda: files)


def project_files() -> dict[str, bytes]:
    """All that a build depends on beside its policy: names relative to the project, and content."""
    settings = next((file for file in (SOURCES / "platformio.ini", PACKAGE / "platformio.ini") if file.is_file()), None)
    if settings is None:
        raise InputError(
            "platformio.ini", "", "neither beside nor inside the package `firmware`: the installation is incomplete"
        )
    files = {"platformio.ini": settings.read_bytes()}
    for file in sorted(PACKAGE.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts and file != settings:
            files[f"{PACKAGE.name}/{file.relative_to(PACKAGE).as_posix()}"] = file.read_bytes()
    return files


def content_hash(files: dict[str, bytes]) -> str:
    """SHA-256 over names and contents, in hex."""
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()
