"""Keeps evidence: outcomes of programs in a local store, verification records of whole environments as committed JSON.

Local outcomes (.cache/outcomes/ENVIRONMENT/KEY.json, one file a program, never committed) save running a program twice. A
verification record says for every program of the site how it ended in one environment; the build makes this machine's own from
the local store and reads those of other environments from docs/records/verification/.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from functools import cache
from pathlib import Path

import paired_timing

from fieldguide import host
from fieldguide.compare import mismatch

SCHEMA, SCHEMA_VERSION = "eager-and-graph/verification", 1
STATUSES = ("passed", "failed", "not-applicable", "illustration", "never-run")


class RecordError(Exception):
    """A record cannot be used: the message names the file and the remedy."""


@cache
def environment(root, python):
    """The environment of the interpreter `python`, a dict of strings, found without importing TensorFlow (snippets/paired_timing.py)."""
    if python == sys.executable:
        return paired_timing.environment()
    done = subprocess.run([python, Path(root) / "snippets" / "paired_timing.py"], capture_output=True, text=True)
    if done.returncode:
        raise RecordError(f"cannot describe the environment of {python}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout)


@cache
def provenance(root):
    """Where and when something is run: commit, whether the tree was dirty, date, load. Shown, and no part of any key."""
    def git(*words):
        try:
            return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return None

    status = git("status", "--porcelain")
    return {
        "commit": git("rev-parse", "HEAD"),
        "dirty": None if status is None else bool(status),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "load": os.getloadavg()[0],
    }


def digest(value):
    """A short name for a JSON value that changes whenever the value does."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


class Outcomes:
    """The outcomes of programs in one environment on this machine. `folder` is .cache/outcomes of the project."""

    def __init__(self, folder, environment):
        self.environment = environment
        self.folder = Path(folder) / digest(environment)
        self.engine = digest([Path(host.__file__).with_name(name).read_text(encoding="utf-8") for name in ("host.py", "engine.py")])
        self.unreadable = []  # messages about files that had to be ignored

    def load(self, program):
        """The stored {"outcome", "provenance"} of this program's present code, or None."""
        path = self._path(program)
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            if stored["digest"] == digest([path.name, stored["outcome"], stored["provenance"]]):
                return stored
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, TypeError, KeyError):
            pass
        return self._ignore(path, "is damaged")

    def save(self, program, outcome, provenance):
        write_json(self.folder / "environment.json", self.environment)
        path = self._path(program)
        write_json(path, {"outcome": outcome, "provenance": provenance, "digest": digest([path.name, outcome, provenance])})

    def _path(self, program):
        shown = "".join(fence.code for fence in (program.stdout, program.stderr) if fence)
        lines = [block.line for block in program.blocks if re.search(r"line \d|md:\d", shown)]  # where the output tells them, they are part of it
        key = digest([program.page, program.ran, lines, bool(program.attributes.get(".fresh")), program.block.language, self.engine])
        return self.folder / f"{key}.json"

    def _ignore(self, path, reason):
        self.unreadable.append(f"{path} {reason}: ignored, its program runs again")


def verification(programs, outcomes):
    """The verification record of the site's `programs` in the environment of `outcomes`."""
    entries, provenances = [], []
    for program in programs:
        stored = outcomes.load(program)
        status, reason = status_of(program, outcomes.environment, stored and stored["outcome"])
        seconds = stored["outcome"]["seconds"] if stored else None
        provenances += [stored["provenance"]] if stored and status in ("passed", "failed") else []
        entries.append({
            "page": program.page, "line": program.line, "id": program.id, "source": program.source,
            "status": status, "reason": reason, "seconds": seconds,
        })
    latest = max(provenances, key=lambda each: each["date"], default=None)
    earliest = min(provenances, key=lambda each: each["date"], default=None)
    return {
        "schema": SCHEMA, "schema_version": SCHEMA_VERSION, "environment": outcomes.environment,
        "provenance": latest and {**latest, "since": earliest["date"], "commits": sorted({each["commit"] or "" for each in provenances})},
        "programs": entries,
    }


def status_of(program, environment, outcome):
    """(status, reason) of a program: see STATUSES."""
    if "illustration" in program.attributes:
        return "illustration", program.attributes["illustration"]
    if reason := program.not_applicable(environment):
        return "not-applicable", reason
    if outcome is None:
        return "never-run", "it has not been run in its present form"
    wrong = mismatch(program, outcome)
    return ("failed", wrong.splitlines()[0]) if wrong else ("passed", None)


def read_verification(path):
    """Reads a committed record. Raises RecordError if it is damaged or of another schema."""
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError:
        raise RecordError(f"{path} is damaged: restore it from git, or make it anew with make verify") from None
    if not isinstance(record, dict) or (record.get("schema"), record.get("schema_version")) != (SCHEMA, SCHEMA_VERSION):
        raise RecordError(f"{path} is not a {SCHEMA} record of version {SCHEMA_VERSION}: make it anew with make verify")
    try:
        whole = record["environment"]["tensorflow"] and record["provenance"]["date"] and all(entry["page"] and entry["source"] and entry["status"] in STATUSES for entry in record["programs"])
    except (KeyError, TypeError):
        whole = False
    if not whole:
        raise RecordError(f"{path} lacks its environment, its provenance or what became of its programs: make it anew with make verify")
    return record


def write_json(path, value):
    """Writes the file whole or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".partial", delete=False, encoding="utf-8") as file:
        json.dump(value, file, indent=1)
    os.replace(file.name, path)
