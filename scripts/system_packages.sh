#!/usr/bin/env bash
# Installs what the harness needs from the system with apt, as root or through sudo; otherwise names what is missing.
# Packages named as arguments are nice to have: they are installed where that works, and otherwise done without.
set -euo pipefail
python="${PYTHON:-python3}"

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "setup: $python is missing or older than 3.11; name another with: make PYTHON=/path/to/python3.11" >&2
  exit 2
fi

need() { # need PACKAGE TEST...: the test succeeds where the package is not needed any more
  local package="$1"; shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}
avr_header() { echo '#include <avr/io.h>' | avr-gcc -mmcu=atmega328p -E -; }
can_make_venv() { "$python" -c 'import venv, ensurepip' || .venv/bin/python -m pip --version; }  # or has one already
host_header() { echo "#include <$1>" | gcc -E -; }
optional_packages=("$@")

look() { # sets `missing` and `optional`
  missing=()
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
  local package
  for package in "${optional_packages[@]}"; do command -v "$package" >/dev/null || optional+=("$package"); done
}

look
if [ "${#missing[@]}" -eq 0 ] && [ "${#optional[@]}" -eq 0 ]; then exit 0; fi

become=(cannot)
if command -v apt-get >/dev/null; then
  if [ "$(id -u)" -eq 0 ]; then become=(env)
  elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then become=(sudo env)
  fi
fi
install() { "${become[@]}" DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >/dev/null; }

if [ "${become[0]}" != cannot ]; then
  echo "setup: installing ${missing[*]} ${optional[*]}"
  "${become[@]}" apt-get update -qq || echo "setup: apt-get update failed; trying with the lists at hand" >&2
  if [ "${#missing[@]}" -gt 0 ]; then install "${missing[@]}" || echo "setup: apt-get install failed" >&2; fi
  for package in "${optional[@]}"; do install "$package" 2>/dev/null || true; done
  look
fi
if [ "${#optional[@]}" -gt 0 ]; then echo "setup: no ${optional[*]} here; tests that need it are skipped"; fi
if [ "${#missing[@]}" -eq 0 ]; then exit 0; fi
{
  echo "setup: these system packages are missing (Debian's names): ${missing[*]}"
  echo "setup: install them and run make again:  sudo apt-get install -y --no-install-recommends ${missing[*]}"
} >&2
exit 2
