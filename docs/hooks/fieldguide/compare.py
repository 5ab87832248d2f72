"""Says whether an outcome is what the page shows, and rewrites what the page shows.

A comparison is exact but for white space at line ends. `.ellipsis` lets `...` stand for any text (within a line, or across lines
of a whole output); `.digits` lets a number with a decimal point differ by half a unit of its last digit shown.
"""

import difflib
import re

ESCAPE = re.compile(r"\x1b\[[\d;]*m")
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.\d*(?:e[-+]?\d+)?|(?<![\w.])[-+]?\d+e[-+]?\d+")


def mismatch(program, outcome):
    """Returns what differs between the page and the outcome, as a message for its author, or None if nothing does."""
    attributes, exception = program.attributes, outcome["exception"]
    if outcome["stopped"]:
        return outcome["stopped"]
    if "exits" in attributes:
        if exception:
            return f"must exit with {attributes['exits']}, but raised:\n{exception['traceback']}"
        if str(outcome["exit"]) != attributes["exits"]:
            return f"must exit with {attributes['exits']}, but " + ("ran to its end" if outcome["exit"] is None else f"exited with {outcome['exit']}")
    elif outcome["exit"] is not None and not (program.command is not None and outcome["exit"] == 0):
        last = "\n".join(outcome["stderr"].strip().splitlines()[-5:])
        return f'ended its process ({outcome["exit"]}) instead of running to its end: write exits="{outcome["exit"]}" if that is the point\n{last}'.rstrip()
    if "raises" in attributes:
        return _exception_mismatch(program, outcome) or _stderr_mismatch(program, outcome)
    if exception:
        or_continue = ", or .continues if it needs the block before it" if exception["type"] == "NameError" else ""
        return f'raised {exception["type"]}: write raises="{exception["type"]}" if that is the point{or_continue}\n{exception["traceback"]}'
    if program.expected is None and outcome["stdout"].strip():
        return "prints, but the page shows no output: add a text fence after it (--update-outputs does)\n" + outcome["stdout"]
    if program.expected is not None and not matches(program.expected, outcome["stdout"], _options(program.stdout)):
        return "prints something else than the page shows:\n" + _diff(program.expected, outcome["stdout"])
    return _stderr_mismatch(program, outcome)


def matches(expected, actual, options=()):
    """Whether the text `actual` is what `expected` says. options: of ".ellipsis", ".digits"."""
    expected, actual = _normal(expected), _normal(actual)
    if not options:
        return expected == actual
    pieces, shown, position = [""], [], 0
    token = re.compile("|".join([r"\.\.\."] * (".ellipsis" in options) + [NUMBER.pattern] * (".digits" in options)))
    for found in token.finditer(expected):
        pieces[-1] += re.escape(expected[position:found.start()])
        if found[0] == "...":
            pieces.append("")
        else:
            pieces[-1] += f"({NUMBER.pattern})"
            shown.append(found[0])
        position = found.end()
    pieces[-1] += re.escape(expected[position:])
    # Each piece is taken where it first occurs and kept there (?>), or a long output with several ... is tried for ever
    pattern = pieces[0] + "".join(f"(?>.*?{piece})" for piece in pieces[1:-1]) + "".join(f".*?{piece}" for piece in pieces[1:][-1:])
    match = re.fullmatch(pattern, actual, re.DOTALL)
    return bool(match) and all(_close(*pair) for pair in zip(shown, match.groups()))


def exception_lines(exception):
    """The complete lines of str(exception), each also without the `TypeError: ` that AutoGraph puts before the original text.

    Without the escape codes, too, with which Keras prints a message in bold.
    """
    lines = {line.strip() for line in ESCAPE.sub("", exception["text"]).splitlines()}
    return lines | {line.removeprefix(f"{exception['type']}: ") for line in lines}


def updated(program, outcome):
    """The text that the page's output fence should hold for this outcome, or None if another text cannot make the page right."""
    if outcome["stopped"] or str(outcome["exit"]) != program.attributes.get("exits", "None") or program.command is not None:
        return None
    if "raises" in program.attributes:
        same = outcome["exception"] and outcome["exception"]["type"] == program.attributes["raises"] and not outcome["stdout"].strip()
        if not same or not _exception_mismatch(program, outcome):
            return None
        last = [line.strip() for line in ESCAPE.sub("", outcome["exception"]["text"]).splitlines() if line.strip()][-1:]
        return "".join(last).removeprefix(f"{outcome['exception']['type']}: ") + "\n"
    if outcome["exception"] or matches(program.expected or "", outcome["stdout"], _options(program.stdout)):
        return None
    return _normal(outcome["stdout"]) + "\n"


def _exception_mismatch(program, outcome):
    wanted, exception = program.attributes["raises"], outcome["exception"]
    if not exception:
        return f"must raise {wanted}, but raised nothing"
    if exception["type"] != wanted:
        return f"must raise {wanted}, but raised {exception['type']}:\n{exception['traceback']}"
    if outcome["stdout"].strip():
        return "prints before it raises, which the page cannot show: print in a block of its own\n" + outcome["stdout"]
    if program.expected is not None and not program.expected.strip():
        return "shows an empty text for what was raised: show a line of it (--update-outputs does), or remove the fence"
    lines = exception_lines(exception)
    for line in (program.expected or "").splitlines():
        if not any(matches(line.strip(), each, _options(program.stdout)) for each in lines):
            return f"no line of the {wanted}'s text is {line.strip()!r}; the text is:\n{exception['text']}"
    return None


def _stderr_mismatch(program, outcome):
    lines = [line.strip() for line in outcome["stderr"].splitlines()]
    for line in (program.stderr.code if program.stderr else "").splitlines():
        if not any(matches(line.strip(), each, _options(program.stderr)) for each in lines):
            return f"no line of stderr is {line.strip()!r}; stderr ends:\n" + "\n".join(lines[-15:])
    return None


def _options(fence):
    return {".ellipsis", ".digits"} & set(fence.attributes) if fence else set()


def _normal(text):
    return "\n".join(line.rstrip() for line in text.expandtabs(4).rstrip().split("\n"))  # tabs as Markdown shows them


def _close(shown, actual):
    digits = max(len(shown.lower().partition("e")[0].partition(".")[2]), "." in shown)  # NumPy's 1. is 1.0
    exponent = int(shown.lower().partition("e")[2] or 0)
    return abs(float(shown) - float(actual)) <= 0.5001 * 10.0 ** (exponent - digits)


def _diff(expected, actual):
    old, new, lines = _normal(expected).split("\n"), _normal(actual).split("\n"), []
    for kind, start, end, new_start, new_end in difflib.SequenceMatcher(None, old, new).get_opcodes():  # ndiff takes minutes for 300 lines
        lines += [("    " if kind == "equal" else "  - ") + line for line in old[start:end]]
        lines += [] if kind == "equal" else ["  + " + line for line in new[new_start:new_end]]
    return "\n".join(lines)
