"""Finds the API reference page of a TensorFlow name, and whether the installed TensorFlow has it."""

import json
import re
import subprocess
from pathlib import Path

from fieldguide.pages import SYMBOL
from fieldguide.programs import page_paths
from fieldguide.records import RecordError, digest, write_json

REFERENCE = "https://www.tensorflow.org/api_docs/python/"
# Run in a process of its own, since the build never imports TensorFlow: says of each name whether it is there, and if it is a member of a class
LOOKUP = """
import inspect, json, sys
import tensorflow as tf
kinds = {}
for name in json.loads(sys.argv[1]):
    try:
        owner, value = None, {"tf": tf}[name.split(".")[0]]
        for part in name.split(".")[1:]:
            owner, value = value, getattr(value, part)
        kinds[name] = "member" if inspect.isclass(owner) else "page"
    except (AttributeError, KeyError):
        kinds[name] = None
print(json.dumps(kinds))
"""


def urls(root, python, version):
    """{name: URL or None} of every [`tf.name`][] on the site's pages. Asks TensorFlow only when the names have changed."""
    pages = [path.read_text(encoding="utf-8") for path in page_paths(root)]
    names = sorted(set(re.findall(SYMBOL, "\n".join(pages))))
    path = Path(root) / ".cache" / "symbols" / f"{digest([names, version])}.json"
    try:
        kinds = json.loads(path.read_text(encoding="utf-8")) if names else {}
    except (FileNotFoundError, ValueError):
        kinds = None
    if not isinstance(kinds, dict) or set(kinds) != set(names):
        done = subprocess.run([python, "-c", LOOKUP, json.dumps(names)], capture_output=True, text=True)
        if done.returncode:
            raise RecordError(f"{python} cannot import TensorFlow: {done.stderr.strip().rpartition(chr(10))[2]}")
        kinds = json.loads(done.stdout.splitlines()[-1])
        write_json(path, kinds)
    return {name: _url(name, kind) for name, kind in kinds.items()}


def _url(name, kind):
    page, _, member = name.replace(".", "/").rpartition("/") if kind == "member" else (name.replace(".", "/"), "", "")
    return kind and REFERENCE + page + (f"#{member}" if member else "")
