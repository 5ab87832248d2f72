#!/usr/bin/env bash
# Runs the code on every page with the GPU visible and keeps the record:  bash tests/gpu/verify.sh [FOLDER]
# PYTHON is the interpreter (default .venv/bin/python); FOLDER receives gpu.json (default docs/records/verification). Under 5 minutes:
# at the limit it stops and records what has run. Without a GPU the pages run all the same, and what needs one is reported as skipped.
set -u
cd "$(dirname "$0")/../.."
python=${PYTHON:-.venv/bin/python} folder=${1:-docs/records/verification} limit=${LIMIT:-280}
export TF_FORCE_GPU_ALLOW_GROWTH=true # the programs run side by side on one card
"$python" -c 'import pytest, sybil, psutil, packaging' || { echo "verify.sh: $python needs: pip install pytest sybil psutil packaging"; exit 2; }

if ! "$python" -c 'import sys, tensorflow as tf; sys.exit(not tf.config.list_physical_devices("GPU"))' 2>/dev/null; then
  echo "verify.sh: TensorFlow sees no GPU here; what needs one is not applicable (SKIPPED below), and no record is written"
  exec "$python" -m pytest docs -q -rs
fi

main=docs/records/verification/main.json kept=$(mktemp)
[ -e "$main" ] && cp -p "$main" "$kept" # --record writes here; this machine's record goes elsewhere
timeout --signal=INT --kill-after=15 "$limit" "$python" -m pytest docs -q -rs --fresh --record
result=$?
mkdir -p "$folder" && mv "$main" "$folder/gpu.json" && echo "verify.sh: wrote $folder/gpu.json"
[ -s "$kept" ] && cp -p "$kept" "$main"
rm -f "$kept"
exit $result
