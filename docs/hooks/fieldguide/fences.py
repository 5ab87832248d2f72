"""Reads the fenced blocks of a Markdown page, and refuses what the fence contract does not allow.

A page is cut into `Fence`s; what is wrong becomes a `Problem` with its line and remedy, and the rest of the page is read on.
The contract is in docs/contributing.md.
"""

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

from markdown.extensions.toc import slugify
from mkdocs.utils.meta import get_data

# What may stand in the braces behind each language; any other language takes only DISPLAY.
DISPLAY = {".annotate", "title", "hl_lines", "linenums"}
ALLOWED = {
    "python": DISPLAY | {".continues", ".fresh", "raises", "exits", "tf", "keras", "python", "device", "illustration"},
    "text": DISPLAY | {".ellipsis", ".digits", ".stderr"},
    "console": DISPLAY | {"exits", "tf", "keras", "python", "device"},
}
# Only these, since many other names (PYTHON, pyi, sage) are shown as Python or as output, and would be neither run nor compared
LANGUAGES = {*ALLOWED, "", "bash", "html", "json", "markdown", "toml", "yaml"}

OPENING = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<info>.*)$")
MISPLACED = re.compile(r"^ *(>|[-*+] |\d+\. )[> ]*(`{3,}(?=[^`]*$)|~{3,}) *[\w.{]")
INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")
INFO = re.compile(r"^(?P<language>[^\s{}`]*)(?:\s+\{(?P<braces>.*)\})?\s*$")
ATTRIBUTE = re.compile(r"""\s*(?:\.(?P<cls>[\w-]+)|(?P<key>[\w-]+)=(?:"(?P<dq>(?:\\.|[^"\\])*)"|'(?P<sq>[^']*)'|(?P<bare>[^\s"'}]+)))(?=\s|$)""")
HEADING = re.compile(r"^(#{1,6})\s+(?P<text>.*?)(?:\s*\{[^}]*#(?P<anchor>[\w-]+)[^}]*\})?\s*#*$")
TAB = re.compile(r'^(?P<indent>\s*)===[!+]?\s+"')


@dataclass(frozen=True)
class Problem:
    """Something on a page that breaks the contract: `line` counts from 1, `message` says what and how to mend it."""

    line: int
    message: str


@dataclass(frozen=True)
class Fence:
    """One fenced block. `line` and `end` are its opening and closing line (from 1); `code` is dedented and ends with a newline."""

    line: int
    end: int
    indent: str
    language: str
    code: str
    attributes: dict = field(default_factory=dict)  # {".continues": True, "raises": "TypeError"}
    heading: str = ""  # slug of the nearest heading above
    tabs: tuple = ()  # lines of the content tabs it stands in, outermost first
    adjoins: bool = False  # nothing but blank lines since the end of the fence before it


def body(text):
    """A page without what MkDocs takes for its front matter; lines count as in the file."""
    rest = get_data(text)[0]
    return "\n" * (text.count("\n") - rest.count("\n")) + rest


def read(text):
    """Returns (fences, problems) of a page's raw Markdown, two tuples."""
    return _read(body(text))


@lru_cache(maxsize=256)  # a build asks for each page four times
def _read(text):
    # As Markdown reads it: tabs are spaces, a line of white space is empty
    lines = [line if line.strip() else "" for line in text.expandtabs(4).split("\n")]
    fences, problems = [], []
    heading, tabs, in_comment, last_end = "", [], 0, None  # in_comment: the line where it began
    number = 0
    while number < len(lines):
        line, number = lines[number], number + 1  # `number` is now the line's number counted from 1
        if in_comment:
            in_comment = 0 if "-->" in line else in_comment
            continue
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        tabs = [tab for tab in tabs if indent >= tab[0] + 4]
        opening = OPENING.match(line)
        if opening and not (opening["ticks"][0] == "`" and "`" in opening["info"]):
            closing = _closing(lines, number, opening["indent"], opening["ticks"])
            if closing is None:
                problems.append(Problem(number, f"this fence is never closed: end it with {opening['ticks']} on a line of its own, indented like this one"))
                break
            shallow = next((each for each in range(number, closing) if lines[each].strip() and not lines[each].startswith(opening["indent"])), None)
            if shallow is not None:
                problems.append(Problem(shallow + 1, "less indented than the fence it belongs to, which ends the block in Markdown: indent it"))
            inner = next((each for each in range(number, closing - 1) if (other := OPENING.match(lines[each])) and other["ticks"] == opening["ticks"] and other["info"].strip()), None)
            if inner is not None:
                problems.append(Problem(inner + 1, "a fence begins inside another one: is the closing fence above it missing?"))
            adjoins = bool(fences) and fences[-1].end == last_end and not any(each.strip() for each in lines[last_end:number - 1])
            if last_end == number - 1:
                problems.append(Problem(number, "two fences touch: put a blank line between them, or the HTML is invalid"))
            fence = Fence(
                line=number, end=closing, indent=opening["indent"], language="", heading=heading,
                code="".join(each[indent:] + "\n" for each in lines[number : closing - 1]), tabs=tuple(tab[1] for tab in tabs), adjoins=adjoins,
            )
            try:
                language, attributes = _parse_info(opening["info"].strip())
                fences.append(replace(fence, language=language, attributes=attributes))
            except ValueError as error:
                problems.append(Problem(number, str(error)))
            number = last_end = closing
            continue
        if misplaced := MISPLACED.match(line):
            problems.append(Problem(number, "a fence cannot begin behind a quote or list mark: put it on a line of its own, indented to the text"))
            if misplaced[1] != ">":
                number = _closing(lines, number, " *", misplaced[2]) or number
        elif match := TAB.match(line):
            tabs.append((len(match["indent"]), number))
        elif match := HEADING.match(line):
            heading = match["anchor"] or slugify(re.sub(r"[`*]", "", match["text"]), "-")
        bare = INLINE_CODE.sub("", line)
        in_comment = number if bare.rfind("<!--") > bare.rfind("-->") else 0
    if in_comment:
        problems.append(Problem(in_comment, "this comment is never closed: end it with -->"))
    return tuple(fences), tuple(problems)


def _closing(lines, start, indent, ticks):
    """The number of the line that closes a fence whose content begins at index `start`, or None."""
    pattern = re.compile(f"{indent}{ticks} *")
    return next((index + 1 for index in range(start, len(lines)) if pattern.fullmatch(lines[index])), None)


def _parse_info(info):
    match = INFO.match(info)
    if not match or (match["braces"] is not None and not match["language"]):
        raise ValueError(f"cannot read the fence line {info!r}: write the language, a space, then attributes in braces")
    language, braces = match["language"], match["braces"] or ""
    if language not in LANGUAGES:
        raise ValueError(f"the language {language!r} is neither run nor compared, and so not allowed: write python, or one of {', '.join(sorted(LANGUAGES - {''}))}")
    attributes, position = {}, 0
    while position < len(braces.rstrip()):
        token = ATTRIBUTE.match(braces, position)
        if not token:
            raise ValueError(f'cannot read the attribute at {braces[position:].strip()!r}: write .name or key="value"')
        value = token["dq"] if token["dq"] is not None else token["sq"] if token["sq"] is not None else token["bare"]
        name = "." + token["cls"] if token["cls"] else token["key"]
        if name not in ALLOWED.get(language, DISPLAY):
            known = ", ".join(sorted(ALLOWED.get(language, DISPLAY)))
            raise ValueError(f"unknown attribute {name!r} of a {language or 'plain'} fence: allowed are {known}")
        attributes[name] = True if token["cls"] else re.sub(r"\\(.)", r"\1", value)
        position = token.end()
    return language, attributes
