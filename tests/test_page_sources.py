"""Promises about the pages as a whole: few exceptions, each with a reason, and no number that was typed."""

import re
import sys

import pytest
from conftest import ROOT

from fieldguide import evidence, fences, notebook, programs


@pytest.fixture(scope="module")
def site():
    return evidence.Site(ROOT, sys.executable)


def fences_with(site, name):
    return [f"{program.page}:{fence.line}" for program in site.programs for fence in (program.stdout, program.stderr) if fence and name in fence.attributes]


@pytest.mark.parametrize("name, most", [(".ellipsis", 40), (".digits", 5)])
def test_inexact_comparison_stays_rare(site, name, most):
    assert len(fences_with(site, name)) <= most


def test_at_most_five_illustrations(site, capsys):
    found = [f"{program.place}: {program.attributes['illustration']}" for program in site.programs if "illustration" in program.attributes]
    with capsys.disabled():
        print(f"\nillustrations: {found or 'none'}")
    assert len(found) <= 5


def test_at_most_five_programs_that_never_ran(site, capsys):
    """Those that belong to no environment with a record; one that belongs here and has not run fails the publishing build."""
    found = [f"{program.place}: {site.unproven(program)}" for program in site.programs if site.unproven(program) and not site.runs_here(program)]
    with capsys.disabled():
        print(f"\nnever run: {found or 'none'}")
    assert len(found) <= 5


# A number of seconds, a percentage or a factor: it was measured, so it must come from a record through a marker
TIMING = re.compile(r"\b\d[\d.,]*\s?(?:ns|µs|us|ms|s|sec|seconds?|minutes?|%)(?![\w-])|\b\d[\d.,]*\s?(?:×|x|times)\s+(?:faster|slower|as fast|as slow)")
# Numbers that are not measured: the notes' own figures, the protocol and the limits of the machinery, and quoted settings
STATED = {
    "docs/evidence/notes-of-2021.md": "the notes' own figures",
    "docs/evidence/method.md": "protocol and limits",
    "docs/contributing.md": "limits",
    "docs/guide/preprocessing.md": "accuracies of a cited report",
}


def test_no_timing_is_typed():
    typed = []
    for path in programs.page_paths(ROOT):
        page = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        text = notebook.as_markdown(text) if notebook.is_notebook(page) else text
        inside = {number for fence in fences.read(text)[0] for number in range(fence.line, fence.end + 1)}
        for number, line in enumerate(text.split("\n"), 1):
            prose = re.sub(r"`[^`]*`|<!--.*?-->|\]\([^)]*\)", "", line)
            if number not in inside and page not in STATED and (match := TIMING.search(prose)):
                typed.append(f"{page}:{number}: {match[0]!r} in {line.strip()[:80]}")
    assert not typed, "\n".join(typed)
