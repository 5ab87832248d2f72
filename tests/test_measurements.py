"""Measurement records: what is refused, and what a marker stands for."""

import copy
import json
import re
import xml.etree.ElementTree as ElementTree

import overhead_sweep
import paired_timing
import pytest

from fieldguide import charts, measurements
from fieldguide.measurements import MeasurementError, read, source, view

ENVIRONMENT = {
    "tensorflow": "2.21.0", "keras": "3.15.1", "numpy": "2.4.6", "python": "3.11.7", "os": "Debian", "machine": "x86_64", "cpu": "A CPU",
    "cores": 2, "gpu": None, "driver": None, "cuda": "12.5.1", "cudnn": "9", "cuda_runtime": None, "cudnn_runtime": None,
    "threads": {}, "flags": {"XLA_FLAGS": "<&>"},
}  # fmt: skip


def record(benchmark="training_modes", **ratios):
    """A record whose baseline takes 10 ms a step and the other cells as many times that as `ratios` says."""
    cells = {"fit": {"label": "fit()", "first_call": 1.0, "steps_per_sample": 20, "samples": [0.010] * 17}}
    for name, ratio in (ratios or {"eager": 3.0}).items():
        samples = [0.010 * ratio * (1 + 0.001 * number) for number in range(17)]
        cells[name] = {"label": f"{name}, <own> loop", "first_call": 0.1, "steps_per_sample": 5, "samples": samples}
    cells["fit again"] = {"label": "fit(), again", "control": True, "steps_per_sample": 20, "samples": [0.010] * 17}
    groups = [{"name": name, "unit": "step", "baseline": "fit", "facts": {}, "cells": copy.deepcopy(cells)} for name in ("batch 20", "batch 128")]
    return {
        "schema": measurements.SCHEMA, "schema_version": 1, "benchmark": benchmark, "source": source(measurements.ROOT, benchmark), "quick": False,
        "environment": copy.deepcopy(ENVIRONMENT), "checks": {}, "groups": groups,
        "settings": {"rounds": 17, "sample_seconds": 0.2, "device": "cpu"},
        "provenance": {"date": "2026-11-30T12:00:00+00:00", "commit": "0123456789abcdef", "dirty": False, "load_before": [0.1, 0.1, 0.1],
                       "load_after": [1.0, 0.1, 0.1], "seconds": 95.4, "command": "python training_modes.py --json …"},
    }  # fmt: skip


def sweep_record():
    made = record("overhead_sweep")
    made["groups"] = []
    for depth, overhead in ((4, 0.005), (16, 0.02)):
        for graph in (0.001, 0.01, 0.1):
            cells = {
                "graph": {"label": "in @tf.function", "first_call": 0.1, "steps_per_sample": 5, "samples": [graph] * 11},
                "eager": {"label": "eager", "first_call": 0.1, "steps_per_sample": 5, "samples": [graph + overhead] * 11},
            }
            facts = {"depth": depth, "width": 32, "batch": 8, "operations": 1}
            made["groups"].append({"name": f"{depth} {graph}", "unit": "step", "baseline": "graph", "facts": facts, "cells": cells})
    return made


def gpu(made):
    made["environment"].update(gpu="NVIDIA H200", driver="575.57", cuda_runtime="12.9", cudnn_runtime="9.28")
    made["settings"]["device"] = "gpu"
    return made


def write(tmp_path, value):
    path = tmp_path / "record.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def test_a_record_is_read(tmp_path):
    assert read(write(tmp_path, record()))["benchmark"] == "training_modes"


def without(*keys):
    made = record()
    inner = made
    for key in keys[:-1]:
        inner = inner[key]
    del inner[keys[-1]]
    return made


def with_samples(*samples):
    made = record()
    made["groups"][0]["cells"]["eager"]["samples"] = list(samples)
    return made


@pytest.mark.parametrize(
    "value, message",
    [
        (json.dumps(record())[:-200], "is damaged: delete it and run `make measure`"),
        ("", "is damaged"),
        ({}, "is not a eager-and-graph/measurement record of version 1"),
        ([], "is not a eager-and-graph/measurement record"),
        ({**record(), "schema_version": 2}, "is not a eager-and-graph/measurement record of version 1: delete it"),
        (json.dumps(with_samples(0.01)).replace("0.01]", "NaN]"), r"holds a number that is none \(NaN\)"),
        (with_samples(0.01, -0.01, -0.02), "lacks samples or holds none"),
        (with_samples(), "lacks samples"),
        (with_samples("quick"), "lacks samples"),
        (without("groups"), "lacks samples"),
        (without("groups", 0, "baseline"), "lacks samples"),
        (without("environment"), "lacks samples"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_file_and_remedy(tmp_path, value, message):
    path = write(tmp_path, value)
    with pytest.raises(MeasurementError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value) and "make measure" in str(caught.value) and "\n" not in str(caught.value)


def test_every_view_is_one_line_of_well_formed_html():
    records = [record(), gpu(record(eager=1.02))]
    for name, args in (("table", []), ("table", ["batch-20"]), ("first", []), ("chart", []), ("environment", []), ("verdict", ["eager"]), ("time", ["fit"])):
        html = view("training_modes", name, args, records)
        assert "\n" not in html
        ElementTree.fromstring(f"<p>{html.replace('<br>', '<br/>')}</p>")
    for name in ("table", "chart", "law"):
        html = view("overhead_sweep", name, [], [sweep_record()])
        assert "\n" not in html
        ElementTree.fromstring(f"<p>{html.replace('<br>', '<br/>')}</p>")


def test_the_table_has_ratio_word_time_interval_and_the_gap_of_the_gpu():
    html = view("training_modes", "table", ["batch-128"], [record()])
    assert "batch 128" in html and "batch 20" not in html
    html = html.replace("\u00a0", " ")
    assert "<td>eager, &lt;own&gt; loop</td><td><strong>302 %</strong> slower<br>30.2 ms <small>(301 % to 304 %)</small></td><td>not measured yet</td>" in html
    assert "<th>GPU</th>" in html and html.count("not measured yet") == 3
    html = view("training_modes", "table", ["batch-128"], [record(), gpu(record(eager=1.02))])
    assert "<th>B TensorFlow 2.21.0, Keras 3, NVIDIA H200</th>" in html and "not measured yet" not in html
    assert "no measurable difference" in html


def test_stale_and_quick_records_say_so():
    made = record()
    assert "stale" not in view("training_modes", "table", [], [made])
    made.update(source="0" * 64, quick=True)
    for name, args in (("table", []), ("chart", []), ("verdict", ["eager"]), ("environment", [])):
        html = view("training_modes", name, args, [made])
        assert "a quick run" in html and "stale: the benchmark has changed since" in html


def test_words_in_a_sentence():
    def text(*args):
        return view("training_modes", *args).replace("\u00a0", " ")

    assert text("verdict", ["eager", "batch-20"], [record()]) == (
        "<strong>slower</strong> (batch 20: 302 % of the time of fit(), between 301 % and 304 %)"
    )
    assert text("verdict", ["eager"], [record(eager=1.0)]).count("<strong>not measurably different</strong>") == 2
    assert ": 20.2 times the time of fit()" in text("verdict", ["eager"], [record(eager=20)])
    assert text("time", ["fit", "batch-20"], [record()]) == "10.0 ms"


def test_first_calls_and_break_even():
    made = record(**{"eager loop": 3.0})
    assert "<td>fit()</td><td>1.00 s<br><small>ahead of eager after 46 steps</small></td>" in view("training_modes", "first", [], [made]).replace("\u00a0", " ")


def test_nothing_measured_yet():
    assert view("training_modes", "table", [], []) == "<em>not measured yet</em>"


@pytest.mark.parametrize(
    "benchmark, name, args, message",
    [
        ("trainig_modes", "table", [], "unknown benchmark 'trainig_modes'"),
        ("training_modes", "tabel", [], "unknown view 'tabel' of a measurement: known are table, first, chart"),
        ("training_modes", "table", ["batch-21"], "no group 'batch-21': there are batch-20, batch-128"),
        ("training_modes", "verdict", ["eger"], "no cell 'eger': there are fit, eager, fit-again"),
        ("training_modes", "verdict", [], "no cell"),
    ],
)
def test_misspelt_markers_name_what_would_work(benchmark, name, args, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        view(benchmark, name, args, [record()])


def test_the_law_of_the_sweep():
    assert view("overhead_sweep", "law", [], [sweep_record()]).replace("\u00a0", " ") == (
        "with 4 layers, eager = 5.00 ms + 1.00 × graph, 1.1 times the graph from steps of 50.0 ms on; "
        "with 16 layers, eager = 20.0 ms + 1.00 × graph, 1.1 times the graph from steps of 200 ms on"
    )


def test_the_law_of_a_sweep_that_levels_off():
    made = sweep_record()
    for group in made["groups"]:
        graph, eager = (group["cells"][name]["samples"] for name in ("graph", "eager"))
        eager[:] = [0.005 + 1.2 * seconds for seconds in graph]
    law = overhead_sweep.law(made)[0]
    assert (round(law["overhead"], 6), round(law["slope"], 6), law["hidden_from"]) == (0.005, 1.2, None)
    assert "levelling off near 1.2 times the graph" in view("overhead_sweep", "law", [], [made])
    assert "<svg" in view("overhead_sweep", "chart", [], [made])


def test_charts_are_the_same_at_every_build_and_speak():
    rows = [("a", [{"ratio": 2.0, "low": 1.9, "high": 2.1}, None])]
    drawn = charts.bars("title <1>", "what it shows", rows, paired_timing.percent)
    assert drawn == charts.bars("title <1>", "what it shows", rows, paired_timing.percent)
    svg = ElementTree.fromstring(drawn)
    names = svg.attrib["aria-labelledby"].split()
    assert [child.attrib["id"] for child in svg[:2]] == names and svg[0].text == "title <1>" and svg[1].text == "what it shows"
    assert "not measured yet" in drawn and "<image" not in drawn and "currentColor" in drawn


def test_charts_stay_inside_their_frame():
    for low, high in ((0.001, 0.002), (0.9, 1.1), (30, 5000)):
        estimate = {"ratio": (low * high) ** 0.5, "low": low, "high": high}
        svg = ElementTree.fromstring(charts.bars("t", "d", [("a", [estimate])], paired_timing.percent))
        numbers = [float(rect.attrib[key]) for rect in svg.iter("rect") for key in ("x", "width")]
        assert all(0 <= number <= charts.WIDTH for number in numbers)
