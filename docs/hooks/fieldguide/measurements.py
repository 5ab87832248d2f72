"""Reads measurement records and shows them on a page.

The lead's code calls exactly these: MeasurementError, read(path), source(root, benchmark), view(benchmark, view, args, records).
"""

import json
from pathlib import Path

import paired_timing

SCHEMA, SCHEMA_VERSION = "eager-and-graph/measurement", 1


class MeasurementError(Exception):
    """A measurement cannot be made, read or shown: the message names the place and the remedy."""


def source(root, benchmark):
    """sha256 of the benchmark's present source and the protocol's: what a record's "source" must equal to be fresh."""
    return paired_timing.source(Path(root) / "snippets" / f"{benchmark}.py")


def read(path):
    """Reads one record. Raises MeasurementError if it is damaged, of another schema, or holds a number that is none."""
    def refuse(word):
        raise MeasurementError(f"{path} holds a number that is none ({word}): delete it and measure again")

    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=refuse)
    except ValueError:
        raise MeasurementError(f"{path} is damaged: delete it and measure again") from None
    if not isinstance(record, dict) or (record.get("schema"), record.get("schema_version")) != (SCHEMA, SCHEMA_VERSION):
        raise MeasurementError(f"{path} is not a {SCHEMA} record of version {SCHEMA_VERSION}: delete it and measure again")
    return record


def view(benchmark, view, args, records):
    """The Markdown or HTML that a `<!-- measured BENCHMARK VIEW ARGS -->` marker stands for; records: the build's own first."""
    if view != "table":
        raise ValueError(f"unknown view {view!r} of a measurement: known are table, chart, environment, verdict")
    if not records:
        return f"*{benchmark} has not been measured yet.*"
    return "\n".join("    " + line for line in paired_timing.table(records[0]).splitlines())
