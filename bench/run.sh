#!/usr/bin/env bash
# `./dev bench` runs this script. It measures Sinew beside its peers and writes the figures to docs/benchmarks.md. All
# rows take more than an hour; `quick` halves that. If the arguments name rows, it measures only these rows.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${SINEW_PYTHON:-}" ]; then
  export SINEW_PYTHON=$PWD/build/reference/bin/python
  if ! cmp -s bench/requirements.txt build/reference/bench-ready; then
    build/reference/bin/pip install --quiet --disable-pip-version-check -r bench/requirements.txt
    cp bench/requirements.txt build/reference/bench-ready
  fi
fi
cmake --build build/release --target bare_loop program_loop reduction_loop comparison_loop kernel_loop accounting_loop input_loop hpo store_bench web_bench -- --quiet
exec "$SINEW_PYTHON" bench/compare.py "$@"
