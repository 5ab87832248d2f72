"""Comparison is exact: what must match, what must not, and what an author is told."""

import pytest
from conftest import program

from fieldguide.compare import matches, mismatch

RAN = {"stdout": "", "stderr": "", "exception": None, "exit": None, "stopped": None, "seconds": 0.1}


def raised(name, text):
    return {**RAN, "exception": {"type": name, "text": text, "traceback": f"{name}: {text}"}}


@pytest.mark.parametrize("expected, actual, options", [
    ("a\nb\n", "a  \nb\n\n", ()),
    ("<f at 0x...>", "<f at 0x7f01>", {".ellipsis"}),
    ("first\n...\nlast", "first\n1\n2\nlast", {".ellipsis"}),
    ("loss 0.69", "loss 0.6931", {".digits"}),
    ("1.5e-3 and 2.0", "1.52e-3 and 1.96", {".digits"}),
])
def test_matches(expected, actual, options):
    assert matches(expected, actual, options)


@pytest.mark.parametrize("expected, actual, options", [
    ("1", "True", ()), ("1", "1.0", ()), ("a b", "a  b", ()), (" a", "a", ()), ("a", "a\nb", ()), ("...", "x", ()), ("a", "A", ()),
    ("0.09", "0.0", {".digits"}), ("1.95", "2.0", {".digits"}), ("1", "2", {".digits"}), ("1", "1.4", {".digits"}), ("0.69", "0.6", {".digits"}), ("1.0", "True", {".digits"}),
    ("a...c", "abd", {".ellipsis"}),
])
def test_does_not_match(expected, actual, options):
    assert not matches(expected, actual, options)


def test_an_exception_needs_its_exact_class_and_complete_lines():
    block = program("f()", "object has no attribute 'numpy'", 'raises="AttributeError"')
    text = "in user code:\n\n    File \"docs/page.md\", line 3, in f  *\n\n    AttributeError: object has no attribute 'numpy'\n"
    assert mismatch(block, raised("AttributeError", text)) is None
    assert "raised nothing" in mismatch(block, RAN)
    assert "but raised ValueError" in mismatch(block, raised("ValueError", text))
    assert "no line" in mismatch(block, raised("AttributeError", text.replace("numpy", "numpy_")))
    assert "no line" in mismatch(program("f()", "has no attribute 'numpy'", 'raises="AttributeError"'), raised("AttributeError", text)), "part of a line is not enough"


def test_bold_is_not_part_of_a_message():
    assert mismatch(program("f()", "Cannot take", 'raises="E"'), raised("E", "\x1b[1mCannot take\x1b[0m\nmore")) is None


def test_a_subclass_is_another_class():
    assert "but raised FileNotFoundError" in mismatch(program("f()", None, 'raises="OSError"'), raised("FileNotFoundError", ""))


def test_an_unexpected_exception_names_its_remedy():
    assert 'write raises="KeyError"' in mismatch(program("f()"), raised("KeyError", "'x'"))


def test_output_missing_extra_or_different_is_shown():
    assert "shows no output" in mismatch(program("f()"), {**RAN, "stdout": "1\n"})
    assert "- 2" in mismatch(program("f()", "2"), RAN)
    assert "  - 2\n  + 3" in mismatch(program("f()", "2"), {**RAN, "stdout": "3\n"})
    assert "prints before it raises" in mismatch(program("f()", "x", 'raises="E"'), {**raised("E", "x"), "stdout": "1"})


def test_an_exit_must_be_the_one_announced():
    assert 'write exits="3"' in mismatch(program("f()"), {**RAN, "exit": 3})
    assert mismatch(program("f()", None, 'exits="3"'), {**RAN, "exit": 3}) is None
    assert "ran to its end" in mismatch(program("f()", None, 'exits="3"'), RAN)
    assert "SIGSEGV" in mismatch(program("f()", None, 'exits="SIGABRT"'), {**RAN, "exit": "SIGSEGV"})
    assert "but raised" in mismatch(program("f()", None, 'exits="3"'), raised("E", "x"))


def test_stderr_lines_must_be_complete():
    found = program("f()", "a warning", output_attributes=".stderr")
    assert mismatch(found, {**RAN, "stderr": "noise\na warning\nnoise"}) is None
    assert "no line of stderr" in mismatch(found, {**RAN, "stderr": "not a warning"})


def test_an_empty_error_text_proves_nothing():
    assert "empty text" in mismatch(program("f()", "", 'raises="E"'), raised("E", "x"))


def test_many_ellipses_and_long_differences_take_no_time():
    import time

    started = time.monotonic()
    assert not matches("a...b...c...d...e", "a b c d " * 2000, {".ellipsis"})
    lines = "\n".join(f"line {number} of this output" for number in range(400))
    assert "prints something else" in mismatch(program("f()", lines), {**RAN, "stdout": lines.replace("of", "in")})
    assert time.monotonic() - started < 2
