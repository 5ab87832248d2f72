#!/usr/bin/env bash
# Runs the benchmarks on the GPU, the notes' experiment first, and keeps each record as it is made:  bash tests/gpu/measure.sh [FOLDER]
# PYTHON is the interpreter (default .venv/bin/python); FOLDER receives BENCHMARK/NAME.json (default docs/records/measurements).
# Under 5 minutes: when little time is left it measures quickly, and then not at all, and says so.
set -u
cd "$(dirname "$0")/../.."
python=${PYTHON:-.venv/bin/python} folder=${1:-docs/records/measurements} limit=${LIMIT:-285}
benchmarks="training_modes overhead_sweep predict_cost freezing_cost conversion_cost cached_features retrace_cost py_function_cost"

if ! "$python" -c 'import sys, tensorflow as tf; sys.exit(not tf.config.list_physical_devices("GPU"))' 2>/dev/null; then
  for each in $benchmarks; do echo "measure.sh: $each: not applicable, TensorFlow sees no GPU here"; done
  exit 0
fi

name=$(PYTHONPATH=docs/hooks:snippets "$python" -c 'import paired_timing; from fieldguide import benchmarks; print(benchmarks.file_name(paired_timing.environment()))') || exit 2
failed=0
for each in $benchmarks; do
  left=$((limit - SECONDS)) quick=()
  if [ "$left" -lt 25 ]; then
    echo "measure.sh: $each: not measured, $left s are left"
    continue
  fi
  [ "$left" -lt 80 ] && [ "$each" != training_modes ] && quick=(--quick)
  timeout --kill-after=5 "$left" "$python" "snippets/$each.py" --device gpu ${quick[@]+"${quick[@]}"} --json "$folder/$each/$name.json"
  result=$?
  [ $result -eq 0 ] && echo "measure.sh: $each: wrote $folder/$each/$name.json, $SECONDS s so far" || failed=1
  [ $result -eq 124 ] && echo "measure.sh: $each: stopped after $left s, nothing written"
done
exit $failed
