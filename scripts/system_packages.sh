#!/usr/bin/env bash
# Installs what the harness needs from the system with apt, as root or through sudo; otherwise names what is missing.
set -euo pipefail
python="${PYTHON:-python3}"

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "setup: $python is missing or older than 3.11; name another with: make PYTHON=/path/to/python3.11" >&2
  exit 2
fi

missing=()
need() { # need PACKAGE TEST...: the test succeeds where the package is not needed any more
  local package="$1"; shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}
avr_header() { echo '#include <avr/io.h>' | avr-gcc -mmcu=atmega328p -E -; }
host_header() { echo "#include <$1>" | gcc -E -; }

need gcc               gcc --version
need libc6-dev         host_header stdio.h
need gcc-avr           avr-gcc --version
need binutils-avr      avr-objcopy --version
need avr-libc          avr_header
need libsimavr-dev     host_header simavr/sim_avr.h
need simavr            sh -c 'command -v simavr'
need avrdude           sh -c 'command -v avrdude'
need arduino-core-avr   test -f /usr/share/arduino/hardware/arduino/avr/bootloaders/optiboot/optiboot_atmega328.hex
need python3-venv      "$python" -c 'import venv, ensurepip'

if [ "${#missing[@]}" -eq 0 ]; then exit 0; fi

install=(apt-get install -y --no-install-recommends "${missing[@]}")
if command -v apt-get >/dev/null; then
  if [ "$(id -u)" -eq 0 ]; then sudo=()
  elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then sudo=(sudo)
  else sudo=(cannot); fi
  if [ "${sudo[*]:-}" != cannot ]; then
    echo "setup: installing ${missing[*]}"
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive "${install[@]}" >/dev/null
    exit 0
  fi
fi
{
  echo "setup: these system packages are missing (Debian's names): ${missing[*]}"
  echo "setup: install them and run make again:  sudo ${install[*]}"
} >&2
exit 2
