"""Reads measurement records and shows them on a page.

A marker `<!-- measured BENCHMARK VIEW ARGS -->` stands for what view() returns: HTML without line breaks, so that it can stand in a
sentence, a list or a tab. Records hold raw samples; every estimate, word and formatted number on the site is made here and in
snippets/paired_timing.py. A record's optional key "url" is where its raw JSON lies, seen from the page.
"""

import json
import re
from functools import cache
from html import escape
from pathlib import Path

import overhead_sweep
import paired_timing
from fieldguide import charts
from paired_timing import SCHEMA, SCHEMA_VERSION

ROOT = Path(__file__).resolve().parents[3]
NOT_YET = "not measured yet"
REMEDY = "delete it and run `make measure`"
IS = {
    "faster": "faster",
    "slower": "slower",
    "no measurable difference": "not measurably different",
    "unstable": "undecided, since the machine was unsteady",
}


def duration(seconds):
    return paired_timing.duration(seconds).replace(" ", "\u00a0")


def percent(ratio):
    return paired_timing.percent(ratio).replace(" ", "\u00a0")


class MeasurementError(Exception):
    """A measurement cannot be made, read or shown: the message names the place and the remedy."""


def source(root, benchmark):
    """sha256 of the benchmark's present source and the protocol's: what a record's "source" must equal to be fresh."""
    return paired_timing.source(Path(root) / "snippets" / f"{benchmark}.py")


def read(path):
    """Reads one record. Raises MeasurementError if it is damaged, of another schema, or holds a number that is none."""

    def refuse(word):
        raise MeasurementError(f"{path} holds a number that is none ({word}): {REMEDY}")

    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=refuse)
    except ValueError:
        raise MeasurementError(f"{path} is damaged: {REMEDY}") from None
    if not isinstance(record, dict) or (record.get("schema"), record.get("schema_version")) != (SCHEMA, SCHEMA_VERSION):
        raise MeasurementError(f"{path} is not a {SCHEMA} record of version {SCHEMA_VERSION}: {REMEDY}")
    try:
        estimates = paired_timing.estimates(record)
        complete = estimates and all(cell["seconds_low"] > 0 for group in estimates for cell in group["cells"])
        complete = complete and {"source", "quick", "environment", "provenance", "settings"} <= set(record)
    except (KeyError, TypeError, IndexError, ValueError, ArithmeticError, AttributeError):
        complete = False
    if not complete:
        raise MeasurementError(f"{path} lacks samples or holds none that can be compared: {REMEDY}")
    return record


@cache
def names(root):
    """All benchmarks: the snippets that hand themselves to the timing protocol's command line."""
    return [path.stem for path in sorted((Path(root) / "snippets").glob("*.py")) if "paired_timing.main(" in path.read_text(encoding="utf-8")]


def view(benchmark, view, args, records):
    """What a marker stands for; records: the build's own first. Raises ValueError, with the words that would work, for one that means nothing."""
    if benchmark not in names(ROOT):
        raise ValueError(f"unknown benchmark {benchmark!r}: known are {', '.join(names(ROOT))}")
    if view not in VIEWS:
        raise ValueError(f"unknown view {view!r} of a measurement: known are {', '.join(VIEWS)}")
    if not records:
        return f"<em>{NOT_YET}</em>"
    return VIEWS[view](benchmark, args, records)


# Blocks


def table(benchmark, args, records):
    """Every cell's time, its ratio to the baseline with its interval, and the word for it, one column an environment."""
    if benchmark == "overhead_sweep":
        return _sweep_table(records)
    parts = []
    for name, groups in _by_group(records, args):
        rows = []
        for label, cells in _by_cell(groups):
            rows.append([escape(label)] + [_result(cell, group) for cell, group in zip(cells, groups)])
        head = f"{escape(name)}, time per {escape(next(filter(None, groups))['unit'])}"
        parts.append(_html_table([head] + _heads(records), _with_gpu_column(rows, records)))
    return "".join(parts) + _stamps(benchmark, records)


def first(benchmark, args, records):
    """First calls, and after how many units the dearer first call has paid for itself against the cell named eager."""
    parts = []
    for name, groups in _by_group(records, args):
        rows = []
        for label, cells in _by_cell(groups):
            if not any(cell and cell["control"] for cell in cells):
                rows.append([escape(label)] + [_first_call(cell, group) for cell, group in zip(cells, groups)])
        parts.append(_html_table([f"{escape(name)}, first call"] + _heads(records), _with_gpu_column(rows, records)))
    return "".join(parts) + _stamps(benchmark, records)


def chart(benchmark, args, records):
    """The same as a picture."""
    if benchmark == "overhead_sweep":
        return "".join(_sweep_chart(record) for record in records)
    parts = []
    for name, groups in _by_group(records, args):
        group = next(filter(None, groups))
        baseline = _cell(group, group["baseline"])["label"]
        rows = [(label, cells) for label, cells in _by_cell(groups) if not any(cell and cell["control"] for cell in cells)]
        told = "; ".join(f"{label}: {_spoken(cell, baseline)}" for label, cells in rows for cell in cells[:1] if cell)
        title = f"{name}: time per {group['unit']} against {baseline}"
        svg = charts.bars(title, f"{told}. Bars are logarithmic; the lines over them are the intervals.", rows, percent)
        parts.append(_figure(svg, title + ", which is 100 %" + _legend(records)))
    return "".join(parts)


def environment(benchmark, args, records):
    """Everything in which the environments of the records differ or agree, one column each."""
    rows = []
    for name, text in STAMP.items():
        rows.append([name] + [text(record) for record in records])
    rows.append(["Raw samples"] + [_raw(record) or "in the repository" for record in records])
    return _html_table([f"<code>{escape(benchmark)}.py</code>"] + _heads(records), _with_gpu_column(rows, records))


def _by_group(records, args):
    """[(name, [the group's estimate in each record, or None])], all or the one whose slug is args[0]."""
    all_groups = [{group["name"]: group for group in paired_timing.estimates(record)} for record in records]
    names = list(dict.fromkeys(name for groups in all_groups for name in groups))
    if args and args[0] not in map(_slug, names):
        raise ValueError(f"no group {args[0]!r}: there are {', '.join(map(_slug, names))}")
    return [(name, [groups.get(name) for groups in all_groups]) for name in names if not args or _slug(name) == args[0]]


def _by_cell(groups):
    """[(label, [the cell's estimate in each group, or None])] of the same group in several records."""
    all_cells = [{cell["name"]: cell for cell in group["cells"]} if group else {} for group in groups]
    names = list(dict.fromkeys(name for cells in all_cells for name in cells))
    return [(next(cells[name]["label"] for cells in all_cells if name in cells), [cells.get(name) for cells in all_cells]) for name in names]


def _result(cell, group):
    if cell is None:
        return NOT_YET
    time = duration(cell["seconds"])
    if cell["word"] == "baseline":
        return f"<strong>100\u00a0%</strong><br>{time}"
    span = f"{percent(cell['low'])} to {percent(cell['high'])}"
    return f"<strong>{percent(cell['ratio'])}</strong> {cell['word']}<br>{time} <small>({span})</small>"


def _first_call(cell, group):
    if cell is None:
        return NOT_YET
    text = duration(cell["first_call"])
    eager = next((each for each in group["cells"] if "eager" in each["name"] and not each["control"]), None)
    if eager and cell is not eager and "eager" not in cell["name"]:
        steps = paired_timing.break_even(cell, eager)
        when = "never ahead of eager" if steps is None else f"ahead of eager after {steps:,} {group['unit']}s"
        text += f"<br><small>{when}</small>"
    return text


def _spoken(cell, baseline):
    if cell["word"] == "baseline":
        return "100 %"
    return f"{percent(cell['ratio'])}, between {percent(cell['low'])} and {percent(cell['high'])}, {cell['word']}"


# Words in a sentence: all of them speak of the first record


def verdict(benchmark, args, records):
    """`is ...`: slower (batch 20: 589 % of the time of fit(), between 452 % and 915 %)."""
    parts = []
    for group, cell in _named(args, records):
        baseline = _cell(group, group["baseline"])["label"]
        span = f"{percent(cell['ratio'])} of the time of {baseline}, between {percent(cell['low'])} and {percent(cell['high'])}"
        parts.append(f"<strong>{IS[cell['word']]}</strong> ({escape(group['name'])}: {escape(span)})".replace("\u00a0× of", " times"))
    return " and ".join(parts) + _caveat(benchmark, records[0])


def time(benchmark, args, records):
    """The time per unit."""
    return " and ".join(duration(cell["seconds"]) for _, cell in _named(args, records)) + _caveat(benchmark, records[0])


def law(benchmark, args, records):
    """What a step costs in eager mode, for each depth of the sweep, and where that is hidden."""
    if benchmark != "overhead_sweep":
        raise ValueError("only overhead_sweep has a law")
    told = []
    for each in overhead_sweep.law(records[0]):
        told.append(f"with {each['depth']} layers, {overhead_sweep.told(each)}".replace(" x ", " × "))
    return "; ".join(told) + _caveat(benchmark, records[0])


def _named(args, records):
    """[(group, cell)] for args CELL [GROUP], slugs of their names."""
    found = []
    for _, (group, *_) in _by_group(records[:1], args[1:]):
        cells = {_slug(cell["name"]): cell for cell in group["cells"]}
        if not args or args[0] not in cells:
            raise ValueError(f"no cell {' '.join(args[:1])!r}: there are {', '.join(cells)}")
        found.append((group, cells[args[0]]))
    return found


# The sweep


def _sweep_chart(record):
    series = []
    for each in overhead_sweep.law(record):
        points = [(p["graph"]["seconds"], p["eager"]) for p in overhead_sweep.points(record) if p["depth"] == each["depth"]]
        series.append({"label": f"{each['depth']} layers", "points": points, **each})
    title = "What eager mode costs, from small steps to large ones"
    told = f"The smaller the step, the more eager mode costs. {law('overhead_sweep', [], [record])}."
    svg = charts.sweep(title, told, series, duration, overhead_sweep.HIDDEN)
    return _figure(svg, f"{_name(record)}. Curves: the law with one overhead and one slope a depth. Dashed: {overhead_sweep.HIDDEN} ×.")


def _sweep_table(records):
    parts = []
    for record in records:
        rows = []
        for point in overhead_sweep.points(record):
            eager = point["eager"]
            ratio = f"{percent(eager['ratio'])} <small>({percent(eager['low'])} to {percent(eager['high'])})</small>"
            numbers = [str(point[name]) for name in ("depth", "width", "batch")]
            rows.append(numbers + [duration(point["graph"]["seconds"]), duration(eager["seconds"]), ratio])
        head = ["layers", "width", "batch", "graph", "eager", "eager of graph"]
        parts.append(f"<details><summary>The numbers: {_name(record)}</summary>{_html_table(head, rows)}</details>")
    if not any(record["settings"]["device"] == "gpu" for record in records):
        parts.append(f"<p>GPU: {NOT_YET}</p>")
    return "".join(parts) + _stamps("overhead_sweep", records)


# Stamps

STAMP = {
    "TensorFlow": lambda r: r["environment"]["tensorflow"],
    "Keras": lambda r: r["environment"]["keras"],
    "NumPy": lambda r: r["environment"]["numpy"],
    "Python": lambda r: r["environment"]["python"],
    "System": lambda r: escape(r["environment"]["os"]),
    "CPU": lambda r: escape(f"{r['environment']['cpu']}, {r['environment']['cores']} cores"),
    "GPU": lambda r: escape(r["environment"]["gpu"] or "none") if r["settings"]["device"] == "gpu" else "not used",
    "Driver": lambda r: r["environment"]["driver"] or "none",
    "CUDA": lambda r: _built(r, "cuda"),
    "cuDNN": lambda r: _built(r, "cudnn"),
    "Threads": lambda r: _variables(r, "threads") or "TensorFlow's default",
    "Variables": lambda r: _variables(r, "flags") or "none that matter",
    "Date": lambda r: r["provenance"]["date"][:10],
    "Commit": lambda r: (r["provenance"]["commit"] or "none")[:10] + (" and changes" if r["provenance"]["dirty"] else ""),
    "Load": lambda r: f"{_load(r, 'load_before')} before, {_load(r, 'load_after')} after",
    "Rounds": lambda r: str(r["settings"]["rounds"]) + (" (quick)" if r["quick"] else ""),
    "Seconds": lambda r: f"{r['provenance']['seconds']:.0f}",
    "Repeat it": lambda r: f"<code>{escape(r['provenance']['command'])}</code>",
}


def _built(record, library):
    built, found = record["environment"][library], record["environment"][library + "_runtime"]
    return (found or "none installed by pip") + (f", built for {built}" if built else "")


def _variables(record, kind):
    return escape(", ".join(f"{name}={value}" for name, value in record["environment"][kind].items()))


def _load(record, when):
    return f"{record['provenance'][when][0]:.2f}" if record["provenance"][when] else "unknown"


def _name(record):
    machine = record["environment"]
    where = machine["gpu"] if record["settings"]["device"] == "gpu" else f"{machine['cores']} CPU cores"
    return escape(f"TensorFlow {machine['tensorflow']}, Keras {machine['keras'].split('.')[0]}, {where}")


def _caveat(benchmark, record):
    notes = ["a quick run"] if record["quick"] else []
    notes += ["stale: the benchmark has changed since"] if record["source"] != source(ROOT, benchmark) else []
    return f" ({'; '.join(notes)})" if notes else ""


def _heads(records):
    letters = "ABCDEFGH" if len(records) > 1 else " "
    return [f"{letters[number]} {_name(record)}{_caveat(record['benchmark'], record)}".strip() for number, record in enumerate(records)]


def _with_gpu_column(rows, records):
    """Appends `not measured yet` to each row while no record is a GPU's; _html_table names the column."""
    return [row + [NOT_YET] for row in rows] if not any(record["settings"]["device"] == "gpu" for record in records) else rows


def _stamps(benchmark, records):
    lines = []
    for head, record in zip(_heads(records), records):
        machine, run = record["environment"], record["provenance"]
        where = f"{machine['cpu']}, {machine['cores']} cores" + (f", {machine['gpu']}" if record["settings"]["device"] == "gpu" else "")
        told = (
            f"NumPy {machine['numpy']}, Python {machine['python']}, {where}; {record['settings']['rounds']} rounds in {run['seconds']:.0f} s "
            f"on {run['date'][:10]}, load {_load(record, 'load_before')}, commit {STAMP['Commit'](record)}"
        )
        raw = _raw(record)
        lines.append(f"{head}: {escape(told)}; <code>{escape(run['command'])}</code>" + (f"; {raw}" if raw else ""))
    return f'<p class="measured"><small>{"<br>".join(lines)}</small></p>'


def _raw(record):
    return f'<a href="{escape(record["url"])}">raw samples</a>' if record.get("url") else ""


def _legend(records):
    return (": " + "; ".join(_heads(records))) if len(records) > 1 else f". {_heads(records)[0]}"


def _figure(svg, caption):
    return f'<figure class="measured">{svg}<figcaption><small>{caption}</small></figcaption></figure>'


def _html_table(head, rows):
    """A first column of row names, then the values; a column more than heads is the missing GPU's."""
    heads = head + ["GPU"] * (len(rows[0]) - len(head)) if rows else head
    top = "".join(f"<th>{text}</th>" for text in heads)
    body = "".join("<tr>" + "".join(f"<td>{text}</td>" for text in row) + "</tr>" for row in rows)
    return f'<div class="measured"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(group, name):
    return next(cell for cell in group["cells"] if cell["name"] == name)


def _slug(name):
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


VIEWS = {
    "table": table,
    "first": first,
    "chart": chart,
    "environment": environment,
    "verdict": verdict,
    "time": time,
    "law": law,
}
