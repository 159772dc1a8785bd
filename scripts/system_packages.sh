#!/usr/bin/env bash
# Installs what the harness needs from the system with apt, as root or through sudo; otherwise names what is missing.
# Packages named as arguments are nice to have: they are installed where that works, and otherwise done without.
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
can_make_venv() { "$python" -c 'import venv, ensurepip' || .venv/bin/python -m pip --version; }  # or has one already
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
need python3-venv      can_make_venv

optional=()
for package in "$@"; do command -v "$package" >/dev/null || optional+=("$package"); done
if [ "${#missing[@]}" -eq 0 ] && [ "${#optional[@]}" -eq 0 ]; then exit 0; fi

become=(cannot)
if command -v apt-get >/dev/null; then
  if [ "$(id -u)" -eq 0 ]; then become=(env)
  elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then become=(sudo env)
  fi
fi
apt() { "${become[@]}" DEBIAN_FRONTEND=noninteractive apt-get "$@"; }

if [ "${become[0]}" != cannot ]; then
  echo "setup: installing ${missing[*]} ${optional[*]}"
  apt update -qq
  if [ "${#missing[@]}" -gt 0 ]; then apt install -y --no-install-recommends "${missing[@]}" >/dev/null; fi
  for package in "${optional[@]}"; do
    apt install -y --no-install-recommends "$package" >/dev/null 2>&1 || echo "setup: no $package here; tests that need it are skipped"
  done
  exit 0
fi
if [ "${#missing[@]}" -eq 0 ]; then
  echo "setup: without ${optional[*]}, tests that need it are skipped"
  exit 0
fi
{
  echo "setup: these system packages are missing (Debian's names): ${missing[*]}"
  echo "setup: install them and run make again:  sudo apt-get install -y --no-install-recommends ${missing[*]}"
} >&2
exit 2
