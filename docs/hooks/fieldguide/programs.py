"""Turns a page's fences into programs: what is run, under which conditions, and what it must print.

A program is a block together with the blocks it continues; it is what the copy button gives.
"""

import hashlib
import json
import re
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from fieldguide import fences, notebook
from fieldguide.fences import Fence, Problem

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = {"tf": 'tf=">=2.16"', "keras": 'keras="<3"', "python": 'python=">=3.12"'}
VERSIONED = tuple(EXAMPLES)
SETS_ENVIRONMENT = re.compile(r"\b(environ|putenv|unsetenv)\b")
IMPORTS_TENSORFLOW = re.compile(r"\b(import|from|import_module|__import__)\b.*\b(tensorflow|keras|tf_keras)")


@dataclass(frozen=True)
class Program:
    """A block and what it must do. `page` is the path from the project's root, such as docs/guide/modes.md."""

    page: str
    id: str  # page#heading-n, the n-th program under that heading
    blocks: tuple  # the chain of Fences; the last is the block itself
    stdout: Fence | None = None
    stderr: Fence | None = None

    @property
    def block(self):
        return self.blocks[-1]

    @property
    def line(self):
        return self.block.line

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    @property
    def attributes(self):
        """The block's own attributes, and the conditions and `.fresh` of the chain it continues."""
        inherited = {}
        for block in self.blocks:
            for key, value in block.attributes.items():
                if key in VERSIONED and inherited.get(key, value) != value:
                    inherited[key] += f",{value}"  # all of them must hold
                elif block is self.block or key in (*VERSIONED, "device", ".fresh"):
                    inherited[key] = value
        return inherited

    @property
    def text(self):
        """The whole program, as copied and as run: its blocks with a blank line between them."""
        return "\n".join(block.code for block in self.blocks)

    @property
    def command(self):
        """For a console block: the arguments behind `python`; None for a Python block."""
        return shlex.split(self.block.code.partition("\n")[0])[2:] if self.block.language == "console" else None

    @property
    def expected(self):
        """The text a console block must print (its lines below the command), or the text fence behind a Python block; None if there is none."""
        if self.command is not None:
            return self.block.code.partition("\n")[2]
        return self.stdout.code if self.stdout else None

    @property
    def ran(self):
        """All code that decides the outcome: the blocks, and for a console block the snippets, any of which it may import."""
        snippets = sorted((ROOT / "snippets").glob("*.py")) if self.command is not None else []
        return [block.code for block in self.blocks] + [path.read_text(encoding="utf-8") for path in snippets]

    @cached_property
    def source(self):
        """sha256 of the program in its present form: code, attributes and everything it is compared with."""
        parts = [self.ran, self.attributes] + [(each.code, each.attributes) for each in (self.stdout, self.stderr) if each]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def not_applicable(self, environment):
        """Why this program is not run in `environment` (see snippets/paired_timing.py), or None if it is."""
        versions = {"tf": ("TensorFlow", environment["tensorflow"]), "keras": ("Keras", environment["keras"]), "python": ("Python", environment["python"])}
        for key, (name, version) in versions.items():
            wanted = self.attributes.get(key)
            if wanted and not (version and SpecifierSet(wanted).contains(version, prereleases=True)):
                return f"needs {name} {wanted}; here it is {version}"
        if self.attributes.get("device") == "gpu" and not environment["gpu"]:
            return "needs a GPU; there is none here"
        return None


def read_site(root, pages=None):
    """The programs of all pages under docs/ (or of those named in `pages`), in order; problems are left to pytest."""
    root = Path(root)
    paths = [root / page for page in pages] if pages else page_paths(root)
    return [program for path in paths for program in collect(path.read_text(encoding="utf-8-sig"), path.relative_to(root).as_posix())[0]]


def page_paths(root):
    """All pages with code: Markdown and text notebooks."""
    docs = Path(root) / "docs"
    return sorted(path for path in docs.rglob("*") if path.suffix in (".md", ".py") and path.relative_to(docs).parts[0] != "hooks")


def collect(text, page):
    """Returns (programs, problems) of a page's Markdown; `page` names it in ids and messages."""
    found, problems = fences.read(notebook.as_markdown(text) if notebook.is_notebook(page) else text)
    problems, programs, counts, taken = [*problems], [], {}, set()
    for index, fence in enumerate(found):
        if fence.language == "text" and index not in taken and set(fence.attributes) & {".ellipsis", ".digits", ".stderr"}:
            problems.append(Problem(fence.line, "this output belongs to no program: only blank lines may stand between a Python block and its output"))
        if fence.language == "text" and fence.adjoins and index not in taken and index - 1 in taken:
            problems.append(Problem(fence.line, "a second output that nothing is compared with: remove it, or put a sentence before it if it is no output"))
        if fence.language == "" and fence.adjoins and (index - 1 in taken or found[index - 1].language == "python"):
            problems.append(Problem(fence.line, "looks like an output that nothing is compared with: write ```text, or put a sentence before it if it is no output"))
        if fence.language == "console" and "snippets/" in fence.code and not fence.code.startswith("$ python snippets/"):
            problems.append(Problem(fence.line, "this console block is not run: begin it with `$ python snippets/`, or show the command as bash"))
        if fence.language != "python" and not (fence.language == "console" and fence.code.startswith("$ python snippets/")):
            continue
        outputs, following = {}, index + 1
        while fence.language == "python" and following < len(found) and found[following].language == "text" and found[following].adjoins:
            kind = "stderr" if found[following].attributes.get(".stderr") else "stdout"
            if kind in outputs or "stderr" in outputs:
                break
            outputs[kind] = found[following]
            taken.add(following)
            following += 1
        try:
            chain = _chain(fence, [program.blocks for program in programs if program.block.language == "python"])
            counts[fence.heading] = counts.get(fence.heading, 0) + 1
            program = Program(page=page, id=f"{page.removeprefix('docs/')}#{fence.heading}-{counts[fence.heading]}", blocks=chain, **outputs)
            _check(program)
            programs.append(program)
        except ValueError as error:
            problems.append(Problem(fence.line, str(error)))
    return programs, sorted(problems, key=lambda problem: problem.line)


def _chain(fence, earlier):
    if not fence.attributes.get(".continues"):
        return (fence,)
    for blocks in reversed(earlier):
        block = blocks[-1]
        ends = {"raises", "exits", "illustration"} & set(block.attributes)
        if not ends and fence.tabs[: len(block.tabs)] == block.tabs:
            return (*blocks, fence)
    raise ValueError(".continues, but no earlier block on this page (in the same tab or outside tabs) can be continued: remove .continues or make the block complete")


def _check(program):
    attributes = program.attributes
    for key in VERSIONED:
        try:
            SpecifierSet(attributes.get(key, ""))
        except InvalidSpecifier:
            raise ValueError(f'{key}="{attributes[key]}" is not a version condition: write for example {EXAMPLES[key]}') from None
    if attributes.get("device", "gpu") != "gpu":
        raise ValueError(f'device="{attributes["device"]}": the only condition is device="gpu"')
    if "raises" in attributes and "exits" in attributes:
        raise ValueError("a block either raises or exits: remove one of the two")
    if not re.fullmatch(r"\d+|SIG[A-Z]\w+", attributes.get("exits", "0")):
        raise ValueError(f'exits="{attributes["exits"]}" is neither an exit status nor a signal such as SIGABRT')
    if program.command is not None and re.search(r"[|&;<>$`*?~\\]", program.block.code.partition("\n")[0][2:]):
        raise ValueError("a console block's command is run without a shell: leave out what only a shell understands")
    if not attributes.get("illustration", "why").strip():
        raise ValueError('an illustration needs its reason: illustration="..." is what the reader is told')
    if "illustration" in attributes and (program.stdout or program.stderr or {"raises", "exits", ".fresh"} & set(attributes)):
        raise ValueError("an illustration is not run, so it can show no output, error or exit: remove them or run it")
    for fence in (program.stdout, program.stderr):
        if fence and fence.attributes.get(".ellipsis") and not re.search(r"\w", fence.code):
            raise ValueError("an output of nothing but ... proves nothing: show at least one word of it")
    setting, importing = SETS_ENVIRONMENT.search(program.text), IMPORTS_TENSORFLOW.search(program.text)
    if setting and importing and setting.start() < importing.start() and not attributes.get(".fresh") and "illustration" not in attributes:
        raise ValueError("sets an environment variable before importing TensorFlow, which is imported already where blocks run: add .fresh")
