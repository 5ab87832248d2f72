"""Runs the benchmarks of snippets/ and finds their records.

A record is valid for a build if its benchmark's source and its environment are the build's. The build keeps its own under
.cache/measurements/; those of `make measure`, committed, are under docs/records/measurements/BENCHMARK/.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from fieldguide import measurements, records
from fieldguide.measurements import MeasurementError

SECONDS = {True: 180, False: 420}  # how long a benchmark may take, quick or not


def stored(root, benchmark):
    """A benchmark's records, committed ones and the build's own, one an environment: of the present source, then full ones, then the newest.

    One that cannot be read is a MeasurementError.
    """
    folders = [Path(root) / ".cache" / "measurements" / benchmark, Path(root) / "docs" / "records" / "measurements" / benchmark]
    found, source = [measurements.read(path) for folder in folders for path in sorted(folder.glob("*.json"))], measurements.source(root, benchmark)
    found.sort(key=lambda record: (record["source"] == source, not record["quick"], record["provenance"]["date"]))
    return list({records.digest([record["environment"], record["settings"].get("device")]): record for record in found}.values())


def valid(root, benchmark, environment):
    """The record of this benchmark's present source in this environment, not a quick one; or None."""
    source = measurements.source(root, benchmark)
    for record in stored(root, benchmark):
        if record["source"] == source and record["environment"] == environment and not record["quick"]:
            return record
    return None


def measure(root, benchmark, environment, folder, python=sys.executable, quick=False, log=print):
    """Runs a benchmark in a subprocess and keeps its record in `folder`. Raises MeasurementError with the program's last words if it fails."""
    root, name = Path(root), file_name(environment) + ("-quick" if quick else "")
    path = Path(folder) / benchmark / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    log(f"measuring {benchmark}{' (quick)' if quick else ''}: this takes up to {'half a minute' if quick else 'two and a half minutes'}")
    unproven = path.with_suffix(".unproven")  # becomes the record once it has been read without complaint
    unproven.unlink(missing_ok=True)
    command = [str(python), f"snippets/{benchmark}.py", "--json", str(unproven), *(["--quick"] if quick else [])]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=None, text=True)  # its progress goes to our stderr
    try:
        output, _ = process.communicate(timeout=SECONDS[quick])
    except subprocess.TimeoutExpired:
        raise MeasurementError(f"snippets/{benchmark}.py did not end within {SECONDS[quick]} s and was stopped") from None
    finally:
        process.kill()
        process.wait()
    if process.returncode:
        last = (output.strip().splitlines() or ["nothing on its standard output; see above"])[-1]
        raise MeasurementError(f"snippets/{benchmark}.py failed with exit {process.returncode}; its last words: {last}")
    if not unproven.exists():
        raise MeasurementError(f"snippets/{benchmark}.py ended well but wrote no record")
    record = measurements.read(unproven)
    os.replace(unproven, path)
    return record


def file_name(environment):
    device = re.sub(r"[^\w]+", "-", environment["gpu"] or f"{environment['cores']}-core cpu").lower()
    return f"tensorflow-{environment['tensorflow']}-{device}-{records.digest(environment)[:6]}"
