"""Draws estimates as SVG: pure functions from numbers and words to a string without line breaks.

Colours are the theme's variables or currentColor, so a chart follows light, dark and print. 360 units wide, it is as wide as a small phone.
"""

import math
import zlib
from html import escape

WIDTH = 360
COLOURS = ("var(--md-typeset-a-color, #4051b5)", "#d9822b", "#0f9960", "#a854a8")
NICE = [digit * 10.0**power for power in range(-9, 6) for digit in (1, 2, 5)]


def bars(title, description, rows, percent):
    """Horizontal bars on a logarithmic axis that grow from 1, the baseline, with intervals.

    rows: [(label, [estimate or None, one a series])]; an estimate has ratio, low, high. percent(ratio) is its text.
    """
    shown = [estimate for _, estimates in rows for estimate in estimates if estimate]
    left, right, letters = 14, WIDTH - 58, len(rows[0][1]) > 1
    x = _log_axis(min([0.8, *(e["low"] for e in shown)]), max([1.25, *(e["high"] for e in shown)]), left, right)
    body, top = [], 6
    for label, estimates in rows:
        body.append(_text(left, top + 10, label))
        top += 16
        for series, estimate in enumerate(estimates):
            if letters:
                body.append(_text(0, top + 9, "ABCDEFGH"[series], size=10))
            if estimate is None:
                body.append(_text(left, top + 9, "not measured yet", size=10))
            else:
                start, end = sorted((x(1), x(estimate["ratio"])))
                colour = COLOURS[series % len(COLOURS)]
                body.append(f'<rect x="{start:.1f}" y="{top}" width="{max(end - start, 1):.1f}" height="10" fill="{colour}" fill-opacity=".55" stroke="{colour}"/>')
                body.append(_whisker(x(estimate["low"]), x(estimate["high"]), top + 5))
                body.append(_text(WIDTH - 2, top + 9, percent(estimate["ratio"]), anchor="end"))
            top += 14
        top += 4
    ticks = [tick for tick in NICE if x(tick) >= left - 1 and x(tick) <= right + 1]
    while len(ticks) > 6:
        ticks = [tick for tick in ticks if abs(math.log(tick)) < 1e-9 or ticks.index(tick) % 2 == ticks.index(1.0) % 2]
    lines = [_line(x(tick), 4, x(tick), top, 0.6 if tick == 1 else 0.15) for tick in ticks]
    lines += [_text(x(tick), top + 12, f"{tick * 100:g} %" if tick < 10 else f"{tick:g} ×", anchor="middle", size=10) for tick in ticks]
    return _svg(title, description, lines + body, top + 16)


def sweep(title, description, series, duration, mark):
    """Eager over graph against the graph's time per step, both logarithmic, with the law slope + overhead / time drawn through.

    series: [{"label", "points": [(seconds, estimate)], "overhead", "slope", "hidden_from" or None}]; mark: the ratio at hidden_from.
    """
    left, right, top, bottom = 34, WIDTH - 8, 8, 250
    times = [seconds for each in series for seconds, _ in each["points"]]
    ratios = [value for each in series for _, e in each["points"] for value in (e["low"], e["high"])]
    longest = max(times + [each["hidden_from"] or 0 for each in series])
    x = _log_axis(min(times) * 0.8, longest * 1.3, left, right)
    y = _log_axis(min([0.9, *ratios]), max([2, *ratios]), bottom, top)
    body = []
    for tick in NICE:
        if left <= x(tick) <= right and f"{tick:e}"[0] == "1":
            body += [_line(x(tick), top, x(tick), bottom, 0.15), _text(x(tick), bottom + 14, duration(tick).replace(".00", "").replace(".0\u00a0", "\u00a0"), anchor="middle", size=10)]
        if top <= y(tick) <= bottom:
            body += [_line(left, y(tick), right, y(tick), 0.5 if tick == 1 else 0.15), _text(left - 4, y(tick) + 3, f"{tick:g} ×", anchor="end", size=10)]
    body.append(f'<line x1="{left}" x2="{right}" y1="{y(mark):.1f}" y2="{y(mark):.1f}" stroke="currentColor" stroke-dasharray="4 3"/>')
    for number, each in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        curve = [min(times) * (longest * 1.2 / min(times)) ** (step / 60) for step in range(61)]
        heights = [(x(seconds), y(each["slope"] + each["overhead"] / seconds)) for seconds in curve]
        path = " ".join(f"{across:.1f},{up:.1f}" for across, up in heights if up >= top)
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        if each["hidden_from"]:
            body.append(f'<line x1="{x(each["hidden_from"]):.1f}" x2="{x(each["hidden_from"]):.1f}" y1="{y(mark):.1f}" y2="{bottom}" stroke="{colour}" stroke-dasharray="2 2"/>')
        for seconds, estimate in each["points"]:
            body.append(_whisker(y(estimate["low"]), y(estimate["high"]), x(seconds), upright=True))
            body.append(_marker(number, x(seconds), y(estimate["ratio"]), colour))
        body += [_marker(number, right - 84, top + 8 + 16 * number, colour), _text(right - 76, top + 12 + 16 * number, each["label"], size=10)]
    body.append(_text((left + right) / 2, bottom + 30, "time of one training step in a graph", anchor="middle", size=10))
    body.append(f'<text transform="translate(9 {(top + bottom) / 2}) rotate(-90)" text-anchor="middle" font-size="10">eager takes this many times as long</text>')
    return _svg(title, description, body, bottom + 36)


def _log_axis(low, high, start, end):
    scale = (end - start) / math.log(high / low)
    return lambda value: start + math.log(value / low) * scale


def _whisker(start, end, middle, upright=False):
    points = [(start, middle - 3), (start, middle + 3), (start, middle), (end, middle), (end, middle - 3), (end, middle + 3)]
    path = " ".join(f"{b:.1f},{a:.1f}" if upright else f"{a:.1f},{b:.1f}" for a, b in points)
    return f'<polyline points="{path}" fill="none" stroke="currentColor"/>'


def _marker(number, x, y, colour):
    if number % 2:
        return f'<rect x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7" fill="{colour}"/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'


def _line(x1, y1, x2, y2, opacity):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="currentColor" stroke-opacity="{opacity}"/>'


def _text(x, y, text, anchor="start", size=12):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'


def _svg(title, description, body, height):
    name = f"chart-{zlib.crc32((title + description).encode()):08x}"
    return (
        f'<svg class="measured" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="{name}-t {name}-d" fill="currentColor" font-family="inherit" '
        f'style="width:100%;max-width:32rem;height:auto"><title id="{name}-t">{escape(title)}</title><desc id="{name}-d">{escape(description)}</desc>{"".join(body)}</svg>'
    )
