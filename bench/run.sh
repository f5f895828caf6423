#!/usr/bin/env bash
# What `./dev bench` runs: every contestant in one go, figures into docs/benchmarks.md. `quick` takes a few minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
export SINEW_PYTHON="${SINEW_PYTHON:-$PWD/build/reference/bin/python}"
exec "$SINEW_PYTHON" bench/compare.py "$@"
