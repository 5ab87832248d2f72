"""Every benchmark runs to a record that can be read and shown, needs nothing but TensorFlow and NumPy, and says in words what it found."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import paired_timing
import pytest
import will_graph_help

from fieldguide import benchmarks, measurements

ROOT = Path(__file__).resolve().parents[1]
NAMES = measurements.names(ROOT)
RUN_ALL = """
import importlib, sys
import numpy as np
import paired_timing, training_modes, will_graph_help
names, folder = sys.argv[2:], sys.argv[1]
paired_timing.QUICK_ROUNDS, paired_timing.QUICK_SAMPLE_SECONDS = 3, 0.002
training_modes.BATCHES = (20,)
for name in names:
    module = importlib.import_module(name)
    paired_timing.main(module.__file__, module.build, getattr(module, "show", None), ["--quick", "--json", f"{folder}/{name}.json"])
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3), tf.keras.layers.BatchNormalization()], name="tiny")
before, will_graph_help.ROUNDS, will_graph_help.SAMPLE_SECONDS = model.get_weights(), 3, 0.002
will_graph_help.will_graph_help(model, batch=8)
print("weights put back:", all(np.array_equal(a, b) for a, b in zip(before, model.get_weights())))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """All benchmarks in one process with the least that can be measured: (what was printed, folder of records)."""
    folder = tmp_path_factory.mktemp("records")
    command = [sys.executable, "-c", RUN_ALL, str(folder), *NAMES]
    done = subprocess.run(command, cwd=ROOT / "snippets", capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout, folder


def test_there_are_eight_benchmarks():
    assert len(NAMES) == 8 and "training_modes" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_and_its_record_can_be_shown(run, name):
    record = measurements.read(run[1] / f"{name}.json")
    assert (record["benchmark"], record["quick"]) == (name, True)
    assert record["environment"] == paired_timing.environment()
    assert record["source"] == measurements.source(ROOT, name)
    assert str(ROOT) not in json.dumps(record) and record["provenance"]["command"] == f"python {name}.py --quick --json …"
    for view in ("table", "chart", "environment", "first"):
        html = measurements.view(name, view, [], [record])
        assert "a quick run" in html and "not measured yet" in html or view == "chart"


def test_the_modes_of_training_agree_and_the_network_learns(run):
    checks = json.loads((run[1] / "training_modes.json").read_text())["checks"]
    losses = checks["mean loss of 10 steps, batch 20"]["values"]
    assert len(losses) == 6 and max(losses.values()) - min(losses.values()) < 1e-3
    assert checks["accuracy after an epoch"]["value"] > 0.375


def test_will_graph_help_puts_the_weights_back(run):
    assert "tiny: 27 parameters, batch 8" in run[0] and "weights put back: True" in run[0]


def test_one_record_an_environment_is_shown_the_present_then_the_full_then_the_newest(run, tmp_path):
    (tmp_path / "snippets").symlink_to(ROOT / "snippets")
    record = json.loads((run[1] / "conversion_cost.json").read_text())
    folder = tmp_path / ".cache" / "measurements" / "conversion_cost"
    folder.mkdir(parents=True)
    for number, (source, quick, date) in enumerate([("old", False, "2026-03"), (record["source"], True, "2026-02"), (record["source"], False, "2026-01"), (record["source"], False, "2025-12")]):
        changed = {**record, "source": source, "quick": quick, "provenance": {**record["provenance"], "date": date}}
        (folder / f"{number}.json").write_text(json.dumps(changed))
    assert [each["provenance"]["date"] for each in benchmarks.stored(tmp_path, "conversion_cost")] == ["2026-01"]


@pytest.mark.parametrize("path", sorted((ROOT / "snippets").glob("*.py")), ids=lambda path: path.stem)
def test_a_file_alone_needs_only_tensorflow_numpy_and_paired_timing(path):
    if path.stem not in [*NAMES, "will_graph_help", "paired_timing"]:
        pytest.skip("no benchmark")
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        imported |= {alias.name.split(".")[0] for alias in node.names} if isinstance(node, ast.Import) else set()
        imported |= {node.module.split(".")[0]} if isinstance(node, ast.ImportFrom) else set()
    assert imported - set(sys.stdlib_module_names) <= {"tensorflow", "numpy", "paired_timing"}


def cell(seconds, ratio, word, first_call=0.0):
    return {"seconds": seconds, "first_call": first_call, "first_units": 1, "ratio": ratio, "low": ratio * 0.99, "high": ratio * 1.01, "word": word}


@pytest.mark.parametrize(
    "ratio, word, expected",
    [
        (4.0, "slower", ["Bound by Python", "30.0 ms a step", "after 35 steps", "a step that takes 300 ms"]),
        (1.3, "slower", ["Between the two"]),
        (1.07, "slower", ["Bound by arithmetic: a graph gains little"]),
        (1.01, "no measurable difference", ["Bound by arithmetic: a graph gains nothing you can measure"]),
        (0.8, "faster", ["Bound by arithmetic"]),
        (4.0, "unstable", ["too unsteady to say more"]),
    ],
)
def test_will_graph_help_says_which_regime(ratio, word, expected):
    text = will_graph_help.report(cell(0.010, 1.0, "baseline", first_call=1.0), cell(0.010 * ratio, ratio, word))
    assert all(each in text for each in expected)


def test_a_model_that_cannot_be_loaded_gets_one_line():
    for name, message in (("nomodule:model", "No model in nomodule"), ("json:nothing", "No nothing in json"), ("json", "Write module:name")):
        with pytest.raises(SystemExit, match=message):
            will_graph_help.load(name)
