"""A comparison that lets a wrong page pass is worth nothing: every expectation of every page is damaged, and each damage must be caught.

In each line of each expected output and error text, and in each expected type and exit, a character is replaced, deleted and
inserted, on the page itself. Not counted as damage, because the page would still be true: white space at line ends, a character
lost next to an ellipsis, a decimal lost where `.digits` was asked for.
"""

import random
import re
import sys

import pytest
from conftest import ROOT

from fieldguide import compare, programs, records

FOREIGN = "¤"  # occurs in no output
KINDS = {
    "replace": lambda text, at: text[:at] + FOREIGN + text[at + 1 :],
    "delete": lambda text, at: text[:at] + text[at + 1 :],
    "insert": lambda text, at: text[:at] + FOREIGN + text[at:],
}


def positions(program):
    """[(index of a page line, position in it)]: one seeded choice in each line that the program is compared with."""
    chosen = []
    for fence in (program.stdout, program.stderr):
        for offset, line in enumerate(fence.code.splitlines() if fence else []):
            spans = [match.span() for match in re.finditer(r"\.\.\.", line)] if ".ellipsis" in fence.attributes else []
            spans += [match.span() for match in compare.NUMBER.finditer(line)] if ".digits" in fence.attributes else []
            free = [at for at, char in enumerate(line) if not char.isspace() and not any(start - 1 <= at <= end for start, end in spans)]
            if free:
                chosen.append((fence.line + offset, len(fence.indent) + random.Random(f"{program.id}{offset}").choice(free)))
    return chosen


def damaged(text, program):
    """Yields (kind, page text) with one expectation damaged."""
    lines = text.split("\n")
    for index, at in positions(program):
        for kind, damage in KINDS.items():
            yield kind, "\n".join([*lines[:index], damage(lines[index], at), *lines[index + 1 :]])
    for key in ("raises", "exits"):
        if key in program.block.attributes:
            line = lines[program.line - 1]
            at = line.index(f'{key}="') + len(f'{key}="')
            for kind, damage in KINDS.items():
                yield kind, "\n".join([*lines[: program.line - 1], damage(line, at), *lines[program.line :]])


def caught(text, program, outcome):
    """Whether the page with this text fails at the program's line."""
    found, problems = programs.collect(text, program.page)
    same = [each for each in found if each.line == program.line]
    return bool(problems) or bool(same and compare.mismatch(same[0], outcome))


def test_every_damage_to_an_expectation_is_caught(capsys):
    outcomes = records.Outcomes(ROOT / ".cache" / "outcomes", records.environment(ROOT, sys.executable))
    total, missed, unrun = 0, [], []
    for program in programs.read_site(ROOT):
        if "illustration" in program.attributes or program.not_applicable(outcomes.environment):
            continue
        stored = outcomes.load(program)
        if not stored or compare.mismatch(program, stored["outcome"]):
            unrun.append(program.place)
            continue
        text = (ROOT / program.page).read_text(encoding="utf-8")
        for kind, page in damaged(text, program):
            total += 1
            if not caught(page, program, stored["outcome"]):
                missed.append(f"{program.place}: {kind}")
    with capsys.disabled():
        print(f"\n{total - len(missed)} of {total} damages caught ({(total - len(missed)) / max(total, 1):.1%})")
    if unrun:
        pytest.fail("not run or failing, so nothing can be said of them; run `pytest docs` first: " + ", ".join(unrun))
    assert total and not missed
