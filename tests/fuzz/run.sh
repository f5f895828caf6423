#!/usr/bin/env bash
# `./dev long fuzz [NAME]` runs this script: each fuzz target for SINEW_FUZZ_SECONDS (600), one line a target.
#
# A crash, a leak, a hang or too much memory is a finding: the script keeps its input in build/fuzz/findings, named
# after the target, and fails. To repeat a finding: build/fuzz/bin/TARGET FILE. Each run starts from the inputs in
# build/fuzz/corpus and adds those that reach new code.
set -uo pipefail
cd "$(dirname "$0")/../.."
seconds=${SINEW_FUZZ_SECONDS:-600}
if ! [[ "$seconds" =~ ^[1-9][0-9]{0,6}$ ]]; then
  echo "SINEW_FUZZ_SECONDS is '$seconds', but must be a number of seconds from 1" >&2
  exit 2
fi
findings=build/fuzz/findings
mkdir -p "$findings" build/fuzz/logs
failed=0 ran=0

for source in src/*/*_fuzz.cpp; do
  target=$(basename "$source" .cpp)
  [[ "$target" == *"${1:-}"* ]] || continue
  ran=$((ran + 1))
  log=build/fuzz/logs/$target.log
  mkdir -p "build/fuzz/corpus/$target"
  # The outer timeout ends a target that hangs where libFuzzer's own alarm has no effect.
  timeout --kill-after=10 $((seconds + 300)) "build/fuzz/bin/$target" -max_total_time="$seconds" -timeout=20 \
    -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$findings/$target-" "build/fuzz/corpus/$target" >"$log" 2>&1
  status=$?
  inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  covered=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
  line=$(printf '%-18s %5d s %10s inputs, %s branches seen' "$target" "$seconds" "${inputs:-?}" "${covered:-?}")
  if [ $status -eq 0 ]; then
    echo "$line: ok"
  else
    failed=1
    kept=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
    echo "$line: FAILED ($status): ${kept:-no input was kept}, see $log"
    grep -m 1 -E 'ERROR:|runtime error:|SINEW_CHECK|check failed' "$log" | cut -c 1-200
  fi
done
if [ $ran -eq 0 ]; then
  echo "no fuzz target is named like '${1:-}'" >&2
  exit 2
fi
exit $failed
