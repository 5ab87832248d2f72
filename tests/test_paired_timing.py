"""The measuring protocol on synthetic clocks with known truth, and what it refuses."""

import json
import math
import random
import subprocess
import sys
from pathlib import Path

import pytest

SNIPPETS = Path(__file__).resolve().parent.parent / "snippets"
sys.path.insert(0, str(SNIPPETS))

import paired_timing as pt  # noqa: E402


class Machine:
    """A clock that advances by the work done: 5 % noise a sample, 20 % drift over a run, 2 % of samples three times as slow."""

    def __init__(self, seed, noise=0.05, drift=0.20, outliers=0.02, length=17 * 5 * 0.2):
        self.random, self.now = random.Random(seed), 0.0
        self.noise, self.drift, self.outliers, self.length = noise, drift, outliers, length

    def clock(self):
        return self.now

    def cell(self, name, unit_seconds):
        def run(units):
            slow = 3.0 if self.random.random() < self.outliers else 1.0
            drift = 1 + self.drift * self.now / self.length
            self.now += units * unit_seconds * self.random.lognormvariate(0, self.noise) * drift * slow
            return 1.0

        return pt.Cell(name, run)

    def words(self, **unit_seconds):
        cells = [self.cell(name, seconds) for name, seconds in unit_seconds.items()]
        groups = pt.measure([pt.Group("g", cells)], pt.ROUNDS, pt.SAMPLE_SECONDS, clock=self.clock)
        return {cell["name"]: cell["word"] for cell in pt.estimates({"groups": groups})[0]["cells"]}


def test_2000_simulated_runs():
    runs, wrong, slower, faster, unstable = 2000, 0, 0, 0, 0
    for seed in range(runs):
        words = Machine(seed).words(base=0.004, same=0.004, slow=0.0044, quick=0.004 / 1.1)
        wrong += words["same"] in ("faster", "slower")
        slower += words["slow"] == "slower"
        faster += words["quick"] == "faster"
        unstable += words["slow"] == "unstable"
        assert words["slow"] != "faster" and words["quick"] != "slower"
    print(f"\n{runs} runs: equal called different {wrong / runs:.1%}; true 10 % found {slower / runs:.1%} and {faster / runs:.1%}; unstable {unstable / runs:.1%}")
    assert wrong <= 0.05 * runs
    assert min(slower, faster) >= 0.90 * runs
    assert unstable <= 0.05 * runs


def test_quick_runs_name_no_wrong_winner():
    for seed in range(500):
        machine = Machine(seed)
        cells = [machine.cell("base", 0.004), machine.cell("same", 0.004), machine.cell("twice", 0.008)]
        groups = pt.measure([pt.Group("g", cells)], pt.QUICK_ROUNDS, pt.QUICK_SAMPLE_SECONDS, clock=machine.clock)
        words = {cell["name"]: cell["word"] for cell in pt.estimates({"groups": groups})[0]["cells"]}
        assert words["twice"] != "faster"


@pytest.mark.parametrize("count, rank", [(17, 5), (15, 4), (11, 2), (9, 2), (7, 1), (5, 1), (1, 1)])
def test_rank_interval(count, rank):
    values = [float(value) for value in range(1, count + 1)]
    random.Random(0).shuffle(values)
    assert pt.interval(values) == ((count + 1) / 2, rank, count + 1 - rank)


def test_words():
    assert pt.word(1.30, 1.20, 1.40) == "slower"
    assert pt.word(0.80, 0.70, 0.90) == "faster"
    assert pt.word(1.04, 1.03, 1.05) == "no measurable difference"  # certain, but under 5 %
    assert pt.word(1.30, 0.99, 1.60) == "no measurable difference"  # large, but not certain
    assert pt.word(1.30, 1.20, 1.40, stable=False) == "unstable"


def test_an_unsteady_pair_of_equals_makes_every_word_unstable():
    def record(again):
        samples = {"a": [1.0] * 15, "b": [2.0] * 15, "a again": [again] * 15}
        cells = {name: {"label": name, "control": name == "a again", "steps_per_sample": 1, "samples": s} for name, s in samples.items()}
        return {"groups": [{"name": "g", "unit": "step", "baseline": "a", "cells": cells}]}

    assert [cell["word"] for cell in pt.estimates(record(1.10))[0]["cells"]] == ["baseline", "unstable", "unstable"]
    assert [cell["word"] for cell in pt.estimates(record(1.01))[0]["cells"]] == ["baseline", "slower", "no measurable difference"]


def test_break_even():
    graph, eager = {"seconds": 0.001, "first_call": 1.0, "first_units": 10}, {"seconds": 0.003, "first_call": 0.1, "first_units": 1}
    steps = pt.break_even(graph, eager)
    assert steps == 447 and 1.0 + (steps - 10) * 0.001 <= 0.1 + (steps - 1) * 0.003 < 1.0 + (steps - 10) * 0.001 + 0.002
    assert pt.break_even(eager, graph) is None


def test_rounds_are_rotated_and_every_round_runs_every_cell():
    ran = []
    cells = [pt.Cell(name, lambda units, name=name: ran.append(name) or 1.0) for name in "abc"]
    ticks = iter(range(10**9))
    pt.measure([pt.Group("g", cells)], 8, 1.0, clock=lambda: next(ticks))
    rounds = [ran[-32:][i : i + 4] for i in range(0, 32, 4)]
    assert all(sorted(order) == ["a", "a", "b", "c"] for order in rounds)
    assert len(set(map(tuple, rounds))) >= 4


def test_groups_can_be_measured_together():
    ran = []
    groups = [pt.Group(name, [pt.Cell(name, lambda units, name=name: ran.append(name) or 1.0)]) for name in "ab"]
    ticks = iter(range(10**9))
    measured = pt.measure(groups, 5, 1.0, clock=lambda: next(ticks), together=True)
    assert [group["name"] for group in measured] == ["a", "b"] and all(len(group["cells"][group["name"]]["samples"]) == 5 for group in measured)
    assert ran[-20:] == ["a", "a", "b", "b"] * 5


def counting(step, each_unit=False):
    """A cell whose Python runs as `step(units)` says."""
    count = [0]

    def run(units):
        count[0] += step(units)
        return 1.0

    return pt.Cell("cell", run, traces=lambda: count[0], each_unit=each_unit)


@pytest.mark.parametrize(
    "cell, message",
    [
        (pt.Cell("cell", lambda units: math.nan), "the result is nan"),
        (pt.Cell("cell", lambda units: math.inf), "the result is inf"),
        (pt.Cell("cell", lambda units: (1.0, math.nan)), "a sample of nan seconds"),
        (pt.Cell("cell", lambda units: (1.0, 0.0)), "a sample of 0.0 seconds"),
        (counting(lambda units: 1), "1 retraces in"),
        (counting(lambda units: 1, each_unit=True), "so it was not eager"),
    ],
)
def test_void_samples(cell, message):
    with pytest.raises(pt.Void, match=message):
        pt.measure([pt.Group("g", [cell])], 2, 1e-4)


def test_void_disagreement():
    assert pt.agree("loss", {"a": 1.0, "b": 1.0004}, 1e-3)["values"]["a"] == 1.0
    for other in (1.01, math.nan, math.inf):
        with pytest.raises(pt.Void, match="loss should agree within 0.001 but does not: a 1, b"):
            pt.agree("loss", {"a": 1.0, "b": other}, 1e-3)


def test_graph_and_eager_counts_pass():
    cells = [counting(lambda units: 0), counting(lambda units: units, each_unit=True)]
    cells[1].name = "eager"
    assert len(pt.measure([pt.Group("g", cells)], 3, 1e-4)[0]["cells"]["eager"]["samples"]) == 3


def test_multiples_are_kept():
    sizes = []
    cell = pt.Cell("cell", lambda units: sizes.append(units) or (1.0, units * 0.003), multiple=10)
    entry = pt.measure([pt.Group("g", [cell])], 3, 0.2)[0]["cells"]["cell"]
    assert entry["steps_per_sample"] == 70 and not any(size % 10 for size in sizes)


def test_writing_is_all_or_nothing(tmp_path):
    path = tmp_path / "new" / "record.json"
    pt.write(path, {"a": 1})
    with pytest.raises(ValueError):
        pt.write(path, {"a": math.nan})
    assert json.loads(path.read_text()) == {"a": 1} and [p.name for p in path.parent.iterdir()] == ["record.json"]


def test_the_command_names_no_folder_of_this_machine():
    assert pt._command("/a/b/training_modes.py", ["--quick", "--json", "/c/d.json"]) == "python training_modes.py --quick --json …"
    assert pt._command("x.py", ["--json=/c/d.json", "--device", "cpu"]) == "python x.py --json=… --device cpu"


def test_durations_and_percentages():
    assert [pt.duration(s) for s in (12.34, 1.0, 0.0995, 0.00512, 4.4e-6, 3.2e-8)] == ["12.3 s", "1.00 s", "99.5 ms", "5.12 ms", "4.40 µs", "32.0 ns"]
    assert [pt.percent(r) for r in (1, 1.4, 9.99, 12.34, 123.4, 1234)] == ["100 %", "140 %", "999 %", "12.3 ×", "123 ×", "1,234 ×"]


def test_the_environment_needs_no_tensorflow_import():
    code = "import sys, json, paired_timing as p; e = p.environment(); assert 'tensorflow' not in sys.modules; print(json.dumps(e))"
    out = subprocess.run([sys.executable, "-c", code], cwd=SNIPPETS, capture_output=True, text=True, check=True).stdout
    found = json.loads(out)
    assert {"tensorflow", "keras", "numpy", "python", "os", "cpu", "cores", "gpu", "driver", "cuda", "cudnn", "threads", "flags"} <= set(found)
    assert found["python"].count(".") == 2 and found["cores"] >= 1


def test_the_environment_sees_variables_that_change_outcomes(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=" + str(Path.home() / "dump"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    found = pt.environment()
    assert found["threads"]["OMP_NUM_THREADS"] == "1"
    assert found["flags"]["XLA_FLAGS"] == "--xla_dump_to=~/dump"


def test_a_machine_with_a_gpu(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA H200, 575.57.08'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert (pt.environment()["gpu"], pt.environment()["driver"]) == ("NVIDIA H200", "575.57.08")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert pt.environment()["gpu"] is None
