#!/usr/bin/env bash
# Rewrites constraints.txt from what .venv holds now: run it after changing a dependency and passing the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
{
  echo "# Versions that the tests passed with; written by scripts/lock.sh. torch 2.13.0 is used in its CPU build."
  .venv/bin/python -m pip freeze --exclude-editable --disable-pip-version-check 2>/dev/null \
    | sed -E 's/^torch==([0-9.]+).*/torch==\1/; / @ /d' | sort -f
} > constraints.txt
