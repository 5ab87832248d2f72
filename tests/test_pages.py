"""What a build makes of pages and evidence: markers, stamps, warnings, links, and errors that stop it."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from fieldguide import pages, records

PAGE = '# Page\n\n```python\nimport tensorflow as tf\n\nprint(1)\n```\n\n```text\n1\n```\n\n```python {.continues raises="ValueError"}\nraise ValueError("no")\n```\n\n```text\nno\n```\n'


@pytest.fixture
def measured(project):
    """A project whose timings need no measuring: its benchmark is replaced by one that writes at once what a real run wrote."""
    project.write("index.md", PAGE)
    (project.root / "snippets" / "training_modes.py").write_text(BENCHMARK)
    return project


BENCHMARK = '''
import json, pathlib, sys
import paired_timing
environment, here = paired_timing.environment(), pathlib.Path(__file__)
cells = {name: {"label": name, "first_call": 1.0, "steps_per_sample": 10, "samples": [seconds + i / 1e5 for i in range(17)], "control": name == "fit again"}
         for name, seconds in (("fit", 0.010), ("eager loop", 0.030), ("fit again", 0.010))}
record = {
    "schema": "eager-and-graph/measurement", "schema_version": 1, "benchmark": "training_modes", "source": paired_timing.source(here), "quick": "--quick" in sys.argv,
    "environment": environment, "provenance": {"date": "2026-01-02T03:04:05+00:00", "commit": None, "dirty": None, "load_before": [0], "load_after": [0], "seconds": 1.0, "command": "python training_modes.py"},
    "settings": {}, "checks": {}, "groups": [{"name": f"batch {n}", "unit": "step", "baseline": "fit", "cells": cells} for n in (20, 128)],
}
pathlib.Path(sys.argv[sys.argv.index("--json") + 1]).write_text(json.dumps(record))
# paired_timing.main(
'''


def build(project, *words):
    done = project.run("mkdocs", "build", *words)
    return done, done.stdout + done.stderr


def test_a_verified_page_builds_strictly_and_says_where_it_ran(measured):
    assert measured.pytest().returncode == 0
    done, told = build(measured, "--strict")
    assert done.returncode == 0, told
    page = (measured.root / "site" / "index.html").read_text()
    assert re.search(r"2 of 2 programs on this page ran as shown, on TensorFlow 2\.\d+", page)
    evidence = json.loads((measured.root / "site" / "evidence" / "verification.json").read_text())
    assert [program["status"] for program in evidence["programs"]] == ["passed", "passed"]
    assert list((measured.root / "site" / "evidence" / "measurements" / "training_modes").glob("*.json"))
    programs = json.loads(re.search(r'id="programs">(.*?)</script>', page)[1])
    assert programs == ["import tensorflow as tf\n\nprint(1)\n", 'import tensorflow as tf\n\nprint(1)\n\nraise ValueError("no")\n']
    assert (measured.root / "site" / "snippets" / "training_modes.zip").exists()


def test_a_page_that_was_not_run_builds_with_a_warning_and_not_strictly(measured):
    measured.pytest()
    measured.write("index.md", PAGE.replace("print(1)", "print(2 - 1)"))
    done, told = build(measured)
    assert done.returncode == 0 and "docs/index.md:3: this program has not been run in its present form: run `make verify`" in told
    assert "Not verified" in (measured.root / "site" / "index.html").read_text()
    assert build(measured, "--strict")[0].returncode != 0


def test_a_failing_program_is_told_to_the_reader(measured):
    measured.write("index.md", PAGE.replace("```text\n1", "```text\n2"))
    measured.pytest()
    done, told = build(measured)
    assert "docs/index.md:3: this program failed when it was run" in told and build(measured, "--strict")[0].returncode != 0


@pytest.mark.parametrize("marker", ["<!-- mesured training_modes table -->", "<!-- measured training_modes -->", "<!-- measured training_modes tabel -->", "<!-- evidence envronments -->", "<!-- note to self -->"])
def test_an_unknown_marker_stops_the_build_at_its_line(measured, marker):
    measured.write("index.md", f"# Page\n\ntext\n\n{marker}\n")
    done, told = build(measured)
    assert done.returncode != 0 and "docs/index.md:5: " in told and "Traceback" not in told, told


def test_a_marker_in_a_code_block_is_text(measured):
    measured.write("index.md", "# Page\n\n```html\n<!-- evidence totals -->\n```\n\n<!-- evidence totals -->\n")
    done, told = build(measured)
    page = (measured.root / "site" / "index.html").read_text()
    assert done.returncode == 0 and "evidence totals" in page and "0 programs on 0 pages" in page


def test_a_damaged_or_foreign_record_is_named(measured):
    folder = measured.root / "docs" / "records" / "verification"
    folder.mkdir(parents=True)
    for content, message in (('{"schema": "eager', "is damaged"), ('{"schema": "other"}', "is not a eager-and-graph/verification record of version 1")):
        (folder / "tf.json").write_text(content)
        done, told = build(measured)
        assert done.returncode != 0 and "tf.json " + message in told and "Traceback" not in told, told


def test_a_record_of_another_form_of_a_program_is_stale(measured):
    measured.pytest("--record", "main")
    path = measured.root / "docs" / "records" / "verification" / "main.json"
    record = json.loads(path.read_text())
    record["environment"]["tensorflow"] = "2.15.1"
    record["programs"][0]["source"] = "0" * 64
    path.write_text(json.dumps(record))
    done, told = build(measured)
    assert done.returncode == 0 and "docs/index.md:3: not run in its present form on TensorFlow 2.15.1" in told
    assert "1 passed; 1 stale" in (measured.root / "site" / "index.html").read_text()
    assert build(measured, "--strict")[0].returncode != 0


def test_a_name_that_tensorflow_has_not_stops_the_build(measured):
    measured.write("index.md", "# Page\n\n[`tf.function`][] and [`tf.Tensor.ref`][]\n")
    assert build(measured)[0].returncode == 0
    page = (measured.root / "site" / "index.html").read_text()
    assert 'href="https://www.tensorflow.org/api_docs/python/tf/function"' in page and 'python/tf/Tensor#ref"' in page
    measured.write("index.md", "# Page\n\n[`tf.functoin`][]\n")
    done, told = build(measured)
    assert done.returncode != 0 and "the installed TensorFlow has no tf.functoin" in told and "Traceback" not in told


FAILING = {
    "fails": ("import sys\nprint('a reason')\nsys.exit(2)", "failed with exit 2; its last words: a reason"),
    "writes nothing": ("", "wrote no record"),
    "writes NaN": (BENCHMARK.replace("seconds + i / 1e5", "float('nan')"), "holds a number that is none"),
    "writes half": ("import pathlib, sys\npathlib.Path(sys.argv[sys.argv.index('--json') + 1]).write_text('{\"schema\"')", "is damaged"),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_benchmark_that_fails_stops_the_build_and_leaves_no_record(measured, name):
    code, message = FAILING[name]
    (measured.root / "snippets" / "training_modes.py").write_text(code)
    done, told = build(measured)
    assert done.returncode != 0 and "training_modes" in told and message in told and "Traceback" not in told, told
    assert not list((measured.root / ".cache").rglob("measurements/**/*.json"))


def test_a_build_killed_while_measuring_leaves_no_record_and_the_next_one_measures(measured):
    benchmark = measured.root / "snippets" / "training_modes.py"
    benchmark.write_text("import pathlib, sys, time\npathlib.Path(sys.argv[sys.argv.index('--json') + 1]).write_text('{')\ntime.sleep(60)")
    process = subprocess.Popen([sys.executable, "-m", "mkdocs", "build"], cwd=measured.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 30
    while not list((measured.root / ".cache").rglob("measurements/**/*.unproven")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not list((measured.root / ".cache").rglob("measurements/**/*.json"))
    benchmark.write_text(BENCHMARK)
    measured.write("index.md", "# Page\n")
    assert build(measured)[0].returncode == 0 and list((measured.root / ".cache").rglob("measurements/**/*.json"))


def test_a_benchmark_that_hangs_is_stopped(measured, monkeypatch):
    from fieldguide import benchmarks, measurements

    (measured.root / "snippets" / "training_modes.py").write_text("while True: pass")
    monkeypatch.setattr(benchmarks, "SECONDS", {True: 1, False: 1})
    with pytest.raises(measurements.MeasurementError, match="did not end within 1 s"):
        benchmarks.measure(measured.root, "training_modes", {**ENVIRONMENT}, measured.root / ".cache", log=lambda text: None)


ENVIRONMENT = {"tensorflow": "2.21.0", "keras": "3", "numpy": "2", "python": "3.11", "os": "Linux", "cpu": "A & B", "cores": 2, "gpu": None, "threads": {}, "flags": {}}


def test_an_environment_is_told_in_one_escaped_line():
    assert pages.environment_text(ENVIRONMENT) == "TensorFlow 2.21.0, Keras 3, NumPy 2, Python 3.11, Linux, A &amp; B, 2 cores, no GPU"


def test_writing_is_whole_or_not_at_all(tmp_path):
    records.write_json(tmp_path / "a.json", {"good": 1})
    with pytest.raises(TypeError):
        records.write_json(tmp_path / "a.json", {"bad": object()})
    assert json.loads((tmp_path / "a.json").read_text()) == {"good": 1}
