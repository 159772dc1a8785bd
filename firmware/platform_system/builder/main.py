"""How the `system` platform builds: avr-gcc for environments with a board, gcc for those without."""

import shutil
import sys
from pathlib import Path

from SCons.Script import AlwaysBuild, Builder, Default, DefaultEnvironment

env = DefaultEnvironment()
has_board = "BOARD" in env


def require(program, package):
    if shutil.which(program, path=env["ENV"]["PATH"]) is None:
        sys.stderr.write(f"Error: {program} is not on PATH; install it: apt install {package}\n")
        env.Exit(2)


def build_avr():
    require("avr-gcc", "gcc-avr binutils-avr avr-libc")
    env.Replace(
        AR="avr-gcc-ar",
        AS="avr-as",
        CC="avr-gcc",
        CXX="avr-g++",
        OBJCOPY="avr-objcopy",
        RANLIB="avr-gcc-ranlib",
        SIZETOOL="avr-size",
        ARFLAGS=["rc"],
        PROGNAME="firmware",
        PROGSUFFIX=".elf",
        SIZEPROGREGEXP=r"^(?:\.text|\.data|\.bootloader)\s+(\d+).*",
        SIZEDATAREGEXP=r"^(?:\.data|\.bss|\.noinit)\s+(\d+).*",
        SIZECHECKCMD="$SIZETOOL -A -d $SOURCES",
        UPLOADER="avrdude",
        UPLOADERFLAGS=["-p", "$BOARD_MCU", "-c", "$UPLOAD_PROTOCOL"],
        UPLOADCMD="$UPLOADER $UPLOADERFLAGS -U flash:w:$SOURCES:i",
    )
    env.Append(
        ASFLAGS=["-x", "assembler-with-cpp", "-mmcu=$BOARD_MCU"],
        CCFLAGS=["-mmcu=$BOARD_MCU"],
        CPPDEFINES=[("F_CPU", "$BOARD_F_CPU")],
        # The linker's regions are made roomy, so that a policy too large for the chip ends as a size with a verdict
        # (PlatformIO's own check, or tinylight's) and never as "region overflowed".
        LINKFLAGS=[
            "-mmcu=$BOARD_MCU",
            "-Wl,--defsym=__TEXT_REGION_LENGTH__=128K",
            "-Wl,--defsym=__DATA_REGION_LENGTH__=0xffa0",
        ],
    )
    hex_action = "$OBJCOPY -O ihex -R .eeprom $SOURCES $TARGET"
    env.Append(BUILDERS={"ElfToHex": Builder(action=env.VerboseAction(hex_action, "Building $TARGET"), suffix=".hex")})
    elf = env.BuildProgram()
    firmware = env.ElfToHex(str(Path("$BUILD_DIR") / "${PROGNAME}"), elf)
    AlwaysBuild(
        env.Alias(
            "upload",
            firmware,
            [env.VerboseAction(find_port, "Looking for upload port..."), env.VerboseAction("$UPLOADCMD", "Uploading $SOURCE")],
        )
    )
    return firmware


def find_port(target, source, env):
    if env.subst("$UPLOAD_PROTOCOL") == "arduino":  # a bootloader erases page by page; a programmer has to erase the chip
        env.Append(UPLOADERFLAGS=["-D"])
    if env.subst("$UPLOAD_SPEED"):
        env.Append(UPLOADERFLAGS=["-b", "$UPLOAD_SPEED"])
    if env.BoardConfig().get("upload.require_upload_port", False):
        env.AutodetectUploadPort()
        env.Append(UPLOADERFLAGS=["-P", '"$UPLOAD_PORT"'])


def build_host():
    require("gcc", "gcc")
    env.Replace(CC="gcc", CXX="g++", AR="gcc-ar", RANLIB="gcc-ranlib", PROGNAME="firmware", PROGSUFFIX="")
    return env.BuildProgram()


program = build_avr() if has_board else build_host()
AlwaysBuild(env.Alias("nobuild", program))
Default(env.Alias("buildprog", program, program))
