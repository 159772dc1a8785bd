"""A PlatformIO platform that needs nothing from PlatformIO's registry.

The compilers are those on PATH. The one package that PlatformIO itself insists on, its build engine `tool-scons`, is
laid out here from the SCons that pip installed beside PlatformIO, unless a suitable one is already there.
"""

import os
import shutil
import tempfile
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from platformio.dependencies import get_core_dependencies
from platformio.exception import UserSideException
from platformio.package.manager.tool import ToolPackageManager
from platformio.package.meta import PackageItem, PackageMetadata, PackageSpec
from platformio.platform.base import PlatformBase
from semantic_version import Version

TOOL = "tool-scons"
SCONS_SCRIPT = '''"""Starts the SCons that lies beside this file."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from SCons.Script.Main import main

sys.exit(main())
'''


class SystemPlatform(PlatformBase):
    def configure_default_packages(self, options, targets):
        # Nothing needs to be looked up: without a network it would wait for time-outs.
        os.environ.setdefault("PLATFORMIO_DISABLE_UPGRADE_CHECK", "true")
        os.environ.setdefault("PLATFORMIO_SETTING_ENABLE_TELEMETRY", "no")
        lay_out_scons(Path(self.config.get("platformio", "packages_dir")))
        return super().configure_default_packages(options, targets)


def lay_out_scons(packages_dir: Path) -> None:
    """Puts tool-scons into PlatformIO's package folder, unless one that it accepts is there already."""
    spec = PackageSpec(owner="platformio", name=TOOL, requirements=get_core_dependencies()[TOOL])
    if ToolPackageManager().get_package(spec):
        return
    tool_version = _scons_tool_version()
    if tool_version is None or not spec.requirements.match(Version(tool_version)):
        raise UserSideException(
            f"PlatformIO wants {TOOL} {spec.requirements} and its Python has {_installed()}; "
            "install what fits into that Python: pip install 'tinylight-hil[firmware]'"
        )
    packages_dir.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{TOOL}-", dir=packages_dir.parent))  # not where packages are looked for
    shutil.copytree(Path(find_spec("SCons").origin).parent, draft / "SCons")  # its bytecode, too: compiling takes a second
    (draft / "scons.py").write_text(SCONS_SCRIPT, encoding="utf-8")
    (draft / "package.json").write_text(f'{{"name": "{TOOL}", "version": "{tool_version}"}}\n', encoding="utf-8")
    PackageItem(str(draft), PackageMetadata("tool", TOOL, tool_version, spec)).dump_meta()
    try:
        draft.rename(packages_dir / TOOL)
    except OSError:  # another process was faster, or an unsuitable version lies there
        target = packages_dir / f"{TOOL}@{tool_version}"
        if ToolPackageManager().get_package(spec) or target.exists():
            shutil.rmtree(draft)
        else:
            draft.rename(target)


def _scons_tool_version():
    """SCons 4.11.1 is tool-scons 4.41101.0: PlatformIO packs the numbers into the second place."""
    try:
        numbers = [int(part) for part in version("scons").split(".")]
    except (PackageNotFoundError, ValueError):
        return None
    major, minor, patch = [*numbers, 0, 0][:3]
    return f"4.{major}{minor:02d}{patch:02d}.0"


def _installed():
    try:
        return f"SCons {version('scons')}"
    except PackageNotFoundError:
        return "no SCons"
