#!/usr/bin/env bash
# Runs the code on every page with the GPU visible and writes docs/records/verification/gpu.json:  bash tests/gpu/verify.sh
# PYTHON is the interpreter (default .venv/bin/python). Under 5 minutes: at the limit it stops and records what has run. Without a GPU the pages run all the same, and what needs one is reported as skipped.
set -u
cd "$(dirname "$0")/../.."
python=${PYTHON:-.venv/bin/python} limit=${LIMIT:-280}
export TF_FORCE_GPU_ALLOW_GROWTH=true # the programs run side by side on one card
"$python" -c 'import pytest, sybil, psutil, packaging, mkdocs' || { echo "verify.sh: $python needs: pip install pytest sybil psutil packaging mkdocs"; exit 2; }

if ! "$python" -c 'import sys, tensorflow as tf; sys.exit(not tf.config.list_physical_devices("GPU"))' 2>/dev/null; then
  echo "verify.sh: TensorFlow sees no GPU here; what needs one is not applicable (SKIPPED below), and no record is written"
  exec "$python" -m pytest docs -q -rs
fi

exec timeout --signal=INT --kill-after=15 "$limit" "$python" -m pytest docs -q -rs --fresh --record gpu
