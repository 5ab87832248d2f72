"""Time several ways of doing the same thing so that a drifting machine cannot pick the winner.

    python paired_timing.py        prints the environment that a measurement would be stamped with

A benchmark is a list of groups of cells: each cell does the same work in its own way. Every round runs
every cell once, in changing order, so that what slows the machine for a while slows all of them. What is
compared are the ratios within a round; their median, and the interval that the ranks of the sorted
ratios give for it, need no assumption about how times are distributed. The first cell of a group is
also run against itself: where that pair differs, the machine was too unsteady to say anything.

This file needs nothing but Python 3.9. It never imports TensorFlow; the benchmarks beside it do.
"""

import argparse
import contextlib
import dataclasses
import datetime
import hashlib
import importlib.metadata
import importlib.util
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Callable, Optional

SCHEMA = "eager-and-graph/measurement"
SCHEMA_VERSION = 1
ROUNDS, SAMPLE_SECONDS = 17, 0.2
QUICK_ROUNDS, QUICK_SAMPLE_SECONDS = 5, 0.04
WORTH_A_WORD = 1.05  # a smaller difference gets no word, however certain it is
STEADY = 1.025  # a pair of equals whose median is further from 1 than this, and surely not 1, is unsteady

THREADS = (
    "OMP_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
)
FLAGS = (
    "AUTOGRAPH_VERBOSITY",
    "CUDA_VISIBLE_DEVICES",
    "KERAS_BACKEND",
    "NVIDIA_TF32_OVERRIDE",
    "ONEDNN_MAX_CPU_ISA",
    "PYTHONHASHSEED",
    "PYTHONOPTIMIZE",
    "TF_CPP_MAX_VLOG_LEVEL",
    "TF_CPP_MIN_LOG_LEVEL",
    "TF_CUDNN_DETERMINISTIC",
    "TF_DETERMINISTIC_OPS",
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_GPU_ALLOCATOR",
    "TF_GPU_THREAD_MODE",
    "TF_USE_LEGACY_KERAS",
    "TF_XLA_FLAGS",
    "XLA_FLAGS",
)


class Void(Exception):
    """The run says nothing: nothing is written, and the message tells why."""


# Measuring


@dataclasses.dataclass
class Cell:
    """One way of doing the work.

    run(n) does n units of work and returns a number read from the result, so that nothing is still running.
    It may return (number, seconds) where its own clock leaves out what comes before the first unit.
    traces() says how often Python has run the step: never during a timed sample in a graph, once a unit in
    eager mode (each_unit=True). multiple: run() takes only multiples of this.
    """

    name: str
    run: Callable
    label: str = ""
    multiple: int = 1
    traces: Optional[Callable] = None
    each_unit: bool = False


@dataclasses.dataclass
class Group:
    """Cells that do the same work. The first is what the others are compared with.

    check() is called when each cell has run once; it raises Void if their results differ.
    """

    name: str
    cells: list
    unit: str = "step"
    facts: dict = dataclasses.field(default_factory=dict)
    check: Callable = lambda: None


def measure(groups, rounds, sample_seconds, clock=time.perf_counter, say=lambda text: None, together=False):
    """Run the groups, a list or a generator; the raw samples, in the form that a record holds.

    One group after the other, or all of them together, each round through every group: then groups can be compared too.
    """
    measured = []
    for batch in [list(groups)] if together else ([group] for group in groups):
        prepared = [(group, _prepare(group, sample_seconds, clock, say)) for group in batch]
        for number in range(rounds):
            for group, entries in prepared:
                say(f"{group.name}: round {number + 1} of {rounds}")
                _round(entries, number, clock)
        for group, entries in prepared:
            cells = {cell.name: dict(entry, samples=samples) for cell, entry, samples in entries}
            baseline = group.cells[0].name
            measured.append({"name": group.name, "unit": group.unit, "baseline": baseline, "facts": group.facts, "cells": cells})
    return measured


def _prepare(group, sample_seconds, clock, say):
    """First calls, the group's own check, and how many units make a sample: [(cell, its part of the record, no samples yet)]."""
    entries = []
    for cell in group.cells:
        say(f"{group.name}: {cell.name}, first call")
        start = clock()
        _finite(_number(cell.run(cell.multiple)), cell)
        entry = {"label": cell.label or cell.name, "first_call": clock() - start, "first_units": cell.multiple}
        entries.append((cell, entry, []))
    group.check()
    for cell, entry, _ in entries:
        say(f"{group.name}: {cell.name}, warming up")
        entry["steps_per_sample"] = _calibrate(cell, sample_seconds, clock)
    baseline, entry, _ = entries[0]
    again = {"label": entry["label"] + ", against itself", "control": True, "steps_per_sample": entry["steps_per_sample"]}
    return entries + [(dataclasses.replace(baseline, name=baseline.name + " again"), again, [])]


def _round(entries, number, clock):
    """Every cell once, in an order that changes from round to round."""
    shift = number // 2 % len(entries)
    order = entries[shift:] + entries[:shift]
    for cell, entry, samples in order if number % 2 else reversed(order):
        samples.append(_sample(cell, entry["steps_per_sample"], clock))


def _calibrate(cell, sample_seconds, clock):
    """Units per sample, found while warming up: three runs at least."""
    units, seconds = cell.multiple, 0.0
    for attempt in range(20):
        seconds = _sample(cell, units, clock, timed=False) * units
        if attempt >= 2 and seconds >= sample_seconds / 3:
            break
        growth = sample_seconds / 2 / max(seconds, 1e-9)
        units = max(cell.multiple, round(units * min(growth, 20) / cell.multiple) * cell.multiple)
    return max(cell.multiple, round(units * sample_seconds / seconds / cell.multiple) * cell.multiple)


def _sample(cell, units, clock, timed=True):
    """Seconds per unit."""
    before = cell.traces() if cell.traces else 0
    start = clock()
    result = cell.run(units)
    seconds = clock() - start
    traced = cell.traces() - before if cell.traces else 0
    if isinstance(result, tuple):
        result, seconds = result
    _finite(result, cell)
    if not 0 < seconds < math.inf:
        raise Void(f"{cell.name}: a sample of {seconds} seconds")
    if timed and cell.traces and traced != (units if cell.each_unit else 0):
        what = "Python ran the step {} times in {} steps, so it was not eager" if cell.each_unit else "{} retraces in {} timed steps"
        raise Void(f"{cell.name}: " + what.format(traced, units))
    return seconds / units


def _number(result):
    return result[0] if isinstance(result, tuple) else result


def _finite(number, cell):
    if not math.isfinite(number):
        raise Void(f"{cell.name}: the result is {number}")


class Counted:
    """A function that counts how often Python runs it: once a trace in a graph, once a call in eager mode."""

    def __init__(self, function):
        self.function, self.runs = function, 0

    def __call__(self, *arguments):
        self.runs += 1
        return self.function(*arguments)


def agree(name, values, tolerance):
    """The values that all cells must share, as a fact for the record; a disagreement voids the run."""
    low, high = min(values.values()), max(values.values())
    if not all(map(math.isfinite, values.values())) or high - low > tolerance * abs(high):
        listed = ", ".join(f"{cell} {value:.6g}" for cell, value in values.items())
        raise Void(f"{name} should agree within {tolerance:g} but does not: {listed}")
    return {"values": values, "tolerance": tolerance}


# The environment: everything outside the program that can change a number or an output.


def environment():
    """The environment as a dict, found out without importing TensorFlow."""
    build = _build_info()
    gpu, driver = _gpu()
    return {
        "tensorflow": _version(
            "tensorflow", "tensorflow-cpu", "tf-nightly", "tf-nightly-cpu", "tensorflow-macos"
        ),
        "keras": _version("keras", "keras-nightly"),
        "numpy": _version("numpy"),
        "python": platform.python_version(),
        "os": _operating_system(),
        "machine": platform.machine(),
        "cpu": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "gpu": gpu,
        "driver": driver,
        "cuda": build.get("cuda_version"),
        "cudnn": build.get("cudnn_version"),
        "cuda_runtime": _version("nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime-cu11"),
        "cudnn_runtime": _version("nvidia-cudnn-cu12", "nvidia-cudnn-cu11"),
        "threads": _variables(THREADS),
        "flags": _variables(FLAGS),
    }


def _version(*distributions):
    for name in distributions:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def _build_info():
    """What the wheel says about its own build; the file is run by itself, since `import tensorflow` takes seconds."""
    try:
        package = os.path.dirname(importlib.util.find_spec("tensorflow").origin)
        path = os.path.join(package, "python", "platform", "build_info.py")
        names = {"__name__": "build_info"}
        with open(path, encoding="utf-8") as file:
            exec(compile(file.read(), "build_info.py", "exec"), names)
        info = dict(names["build_info"])
        return info if info.get("is_cuda_build") else {}
    except Exception:  # no TensorFlow, or one that is built in another way
        return {}


def _gpu():
    """Name and driver version of the first NVIDIA GPU that a program started here could see."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1") or not shutil.which("nvidia-smi"):
        return None, None
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout
        name, driver = out.splitlines()[0].rsplit(",", 1)
        return name.strip(), driver.strip()
    except (OSError, subprocess.SubprocessError, IndexError, ValueError):
        return None, None


def _operating_system():
    if platform.system() == "Darwin":
        return "macOS " + platform.mac_ver()[0]
    if platform.system() != "Linux":
        return platform.system() + " " + platform.version()
    system = _lines("/etc/os-release", "=").get("PRETTY_NAME", "Linux").strip('"')
    return system + (" under WSL" if "microsoft" in platform.release().lower() else "")


def _processor():
    if platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=5).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            pass
    name = _lines("/proc/cpuinfo", ":").get("model name")
    return " ".join((name or platform.processor() or platform.machine()).split())


def _lines(path, separator):
    """The `key separator value` lines of a small system file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            pairs = (line.split(separator, 1) for line in file if separator in line)
            return {key.strip(): value.strip() for key, value in pairs}
    except OSError:
        return {}


def _variables(names):
    home = os.path.expanduser("~").rstrip(os.sep) or os.sep + "home"
    return {name: os.environ[name].replace(home, "~") for name in names if name in os.environ}


# Judging: from raw samples to words. Records hold no estimate; these functions make them when they are shown.


def estimates(record):
    """The groups of a record with, for each cell, its time, its ratio to the baseline, and a word."""
    return [_estimate_group(group) for group in record["groups"]]


def _estimate_group(group):
    baseline = group["cells"][group["baseline"]]["samples"]
    cells = []
    for name, cell in group["cells"].items():
        seconds, seconds_low, seconds_high = interval(cell["samples"])
        ratio, low, high = interval([a / b for a, b in zip(cell["samples"], baseline)])
        cells.append(
            {
                "name": name,
                "label": cell["label"],
                "control": cell.get("control", False),
                "first_call": cell.get("first_call"),
                "first_units": cell.get("first_units", 1),
                "steps_per_sample": cell["steps_per_sample"],
                "seconds": seconds,
                "seconds_low": seconds_low,
                "seconds_high": seconds_high,
                "ratio": ratio,
                "low": low,
                "high": high,
            }
        )
    stable = not any(cell["control"] and unsteady(cell["ratio"], cell["low"], cell["high"]) for cell in cells)
    for cell in cells:
        cell["word"] = "baseline" if cell["name"] == group["baseline"] else word(cell["ratio"], cell["low"], cell["high"], stable)
    return dict(group, stable=stable, rounds=len(baseline), cells=cells)


def interval(values):
    """The median of the values and the interval that their ranks give for it at 95 % (17 values: 5th and 13th)."""
    values, count = sorted(values), len(values)
    rank, tail = 1, 0.5**count
    while 2 * (tail + math.comb(count, rank) * 0.5**count) <= 0.05:
        tail += math.comb(count, rank) * 0.5**count
        rank += 1
    return statistics.median(values), values[rank - 1], values[count - rank]


def word(ratio, low, high, stable=True):
    if not stable:
        return "unstable"
    if low > 1 and ratio > WORTH_A_WORD:
        return "slower"
    if high < 1 and ratio < 1 / WORTH_A_WORD:
        return "faster"
    return "no measurable difference"


def unsteady(ratio, low, high):
    """Whether a pair of equals differs: surely, and by more than a fortieth."""
    return (low > 1 and ratio > STEADY) or (high < 1 and ratio < 1 / STEADY)


def break_even(slow_start, quick_start):
    """After how many units the cell with the dearer first call has caught up; None: never."""
    saved = quick_start["seconds"] - slow_start["seconds"]
    extra, less = (each["first_call"] - each["first_units"] * each["seconds"] for each in (slow_start, quick_start))
    return None if saved <= 0 else max(1, math.ceil((extra - less) / saved))


# Showing


def duration(seconds):
    """Two or three significant digits and a unit."""
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= 0.9995 * size or unit == "ns":
            value = seconds / size
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"


def percent(ratio):
    """100 % is the baseline; from ten times on it reads as a factor."""
    if ratio < 9.995:
        return f"{ratio * 100:.{0 if ratio >= 0.0995 else 1 if ratio >= 0.00995 else 2}f} %"
    return f"{ratio:,.{1 if ratio < 99.95 else 0}f} ×"


def table(record):
    """What the benchmark prints."""
    lines = []
    for group in estimates(record):
        rows = [(group["name"], "per " + group["unit"], "of " + group["baseline"], "interval", "", "first call")]
        for cell in group["cells"]:
            first = "" if cell["first_call"] is None else duration(cell["first_call"])
            span = "" if cell["word"] == "baseline" else f"{percent(cell['low'])} to {percent(cell['high'])}"
            rows.append((cell["label"], duration(cell["seconds"]), percent(cell["ratio"]), span, cell["word"], first))
        widths = [max(len(row[column]) for row in rows) for column in range(6)]
        for row in rows:
            cells = (text.ljust(width) if i in (0, 4) else text.rjust(width) for i, (text, width) in enumerate(zip(row, widths)))
            lines.append("  ".join(cells).rstrip())
        lines.append("")
    return "\n".join(lines)


# Running a benchmark from the command line and writing its record


def main(file, build, show=None, argv=None):
    """build(options) makes the cells and returns (groups, settings, checks); show(record) gives what is printed."""
    parser = argparse.ArgumentParser(description=sys.modules[build.__module__].__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="write the raw samples and the environment to FILE")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples: a first look, no evidence")
    parser.add_argument("--device", choices=("cpu", "gpu"), help="default: the GPU if TensorFlow sees one")
    argv = sys.argv[1:] if argv is None else argv
    options = parser.parse_args(argv)
    name = os.path.splitext(os.path.basename(file))[0]
    progress = Progress(name)
    try:
        record = _record(name, file, build, options, argv, progress)
    except Void as reason:
        progress.end()
        sys.exit(f"{name}: void, nothing was written. {reason}")
    progress.end()
    print(f"{_stamp(record)}\n\n{(show or table)(record)}", end="")
    if options.json:
        write(options.json, record)


def _record(name, file, build, options, argv, progress):
    start, stamp, load = time.time(), environment(), _load()
    progress("importing TensorFlow")
    options.say = progress
    if options.device == "cpu":
        stamp["gpu"] = stamp["driver"] = None
    with native_stderr_kept():
        options.device = _device(options.device)
    groups, settings, checks = build(options)
    rounds, seconds = (QUICK_ROUNDS, QUICK_SAMPLE_SECONDS) if options.quick else (ROUNDS, SAMPLE_SECONDS)
    rounds, seconds = settings.get("rounds", rounds), settings.get("sample_seconds", seconds)
    measured = measure(groups, rounds, seconds, say=progress, together=settings.get("together", False))
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "benchmark": name,
        "source": source(file),
        "quick": options.quick,
        "environment": stamp,
        "provenance": {
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            **_commit(file),
            "load_before": load,
            "load_after": _load(),
            "seconds": round(time.time() - start, 1),
            "command": _command(file, argv),
        },
        "settings": {"rounds": rounds, "sample_seconds": seconds, "device": options.device, **settings},
        "checks": checks,
        "groups": measured,
    }


@contextlib.contextmanager
def native_stderr_kept():
    """Keep back what TensorFlow's libraries print at the start, unless the start fails."""
    level = os.environ.get("TF_CPP_MIN_LOG_LEVEL")
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = level or "3"
    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            kept.seek(0)
            os.write(terminal, kept.read())
            raise
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)
            if level is None:
                del os.environ["TF_CPP_MIN_LOG_LEVEL"]


def _device(wanted):
    """Hide the GPU where it is not wanted and start TensorFlow; the device that will be used."""
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    if wanted == "gpu" and not gpus:
        raise Void("TensorFlow sees no GPU on this machine.")
    if wanted == "cpu" or not gpus:
        tf.config.set_visible_devices([], "GPU")
    else:
        for gpu in gpus:
            tf.config.experimental.set_memory_growth(gpu, True)
    tf.function(lambda x: x + 1)(tf.constant(1.0))  # what a process does once is no cell's first call
    return "cpu" if wanted == "cpu" or not gpus else "gpu"


def source(file):
    """What a record is bound to: the text of the benchmark and of this file."""
    digest = hashlib.sha256()
    for path in (file, os.path.join(os.path.dirname(os.path.abspath(file)), "paired_timing.py")):
        with open(path, "rb") as handle:
            digest.update(handle.read())
    return digest.hexdigest()


def write(path, record):
    """All or nothing: a run that is ended half-way leaves no file, or the old one."""
    text = json.dumps(record, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    handle, partial = tempfile.mkstemp(suffix=".partial", dir=folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(partial, 0o644)
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise


def _command(file, argv):
    """The command to repeat the run, without this machine's folders."""
    shown = ["…" if before == "--json" else text.split("=")[0] + "=…" if text.startswith("--json=") else text for before, text in zip([""] + argv, argv)]
    return " ".join(["python", os.path.basename(file)] + shown)


def _commit(file):
    """The commit of the benchmark, if it lies in a repository that knows it, and whether it was changed since."""
    files = [os.path.abspath(file), os.path.join(os.path.dirname(os.path.abspath(file)), "paired_timing.py")]

    def git(*arguments):
        command = ["git", "-C", os.path.dirname(files[0]), *arguments, "--", *files]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch")
        return {"commit": git("rev-parse", "HEAD").splitlines()[0], "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError, IndexError):
        return {"commit": None, "dirty": None}


def _load():
    return [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else None


def _stamp(record):
    machine, settings = record["environment"], record["settings"]
    where = machine["gpu"] or f"{machine['cpu']}, {machine['cores']} cores"
    quick = "quick, " if record["quick"] else ""
    return (
        f"TensorFlow {machine['tensorflow']}, Keras {machine['keras']}, NumPy {machine['numpy']}, Python {machine['python']}\n"
        f"{where}; {quick}{settings['rounds']} rounds, {record['provenance']['seconds']:.0f} s, load {record['provenance']['load_before']}"
    )


class Progress:
    """One line on stderr: rewritten on a terminal, repeated every few seconds elsewhere."""

    def __init__(self, name):
        self.name, self.start, self.shown = name, time.time(), 0.0

    def __call__(self, text):
        line, now = f"{self.name} {time.time() - self.start:4.0f} s  {text}", time.time()
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K" + line)
        elif now - self.shown >= 5:
            sys.stderr.write(line + "\n")
            self.shown = now
        sys.stderr.flush()

    def end(self):
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")


if __name__ == "__main__":
    print(json.dumps(environment(), indent=1))
