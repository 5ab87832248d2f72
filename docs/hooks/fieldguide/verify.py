"""Makes pytest run the pages: Sybil finds the blocks, the engine runs their programs side by side, each block asserts on its outcome."""

import os
import sys
from concurrent.futures import CancelledError
from pathlib import Path

import pytest
from sybil import Document, Region, Sybil

from fieldguide import compare, environments, notebook, programs, records
from fieldguide.engine import Engine, EngineError


class Pages(Sybil):
    """The Sybil of the site's pages."""

    def __init__(self, root, **patterns):
        self.root, self.verification = Path(root), None
        super().__init__(parsers=[self.regions], document_types={".py": Document}, encoding="utf-8-sig", **patterns)

    def regions(self, document):
        """A region for each program of a page, and one for each problem, which fails."""
        page = Path(os.path.relpath(document.path, self.root)).as_posix()  # by the name it has in docs/, where a link leads elsewhere
        found, problems = programs.collect(document.text, page)
        starts = [0]
        for line in document.text.split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        for program in found:
            yield Region(starts[program.line - 1], starts[program.block.end] - 1, program, self.evaluate)
        for problem in problems:
            message = f"{page}:{problem.line}: {problem.message}"
            yield Region(starts[problem.line - 1], starts[problem.line - 1], message, lambda example: example.parsed)

    def identify(self, example):
        parsed = example.region.parsed
        return f"{parsed.id.partition('#')[2]}:{parsed.line}" if isinstance(parsed, programs.Program) else f"problem:{example.line}"

    def evaluate(self, example):
        return self.verification.check(example.parsed)


class Verification:
    """One pytest session's run of programs: which are wanted, their outcomes, and what is written at the end."""

    def __init__(self, config):
        self.root = config.rootpath
        self.fresh, self.update = config.option.fresh, config.option.update_outputs
        self.name, self.record = config.option.environment, config.option.record
        self.only = environments.settings(self.root).get(self.name, {}).get("pages")
        python = environments.interpreter(self.root, self.name) if self.name else sys.executable
        self.outcomes = records.Outcomes(self.root / ".cache" / "outcomes", records.environment(self.root, str(python)))
        self.engine = Engine(self.root, python)
        self.futures, self.edits = {}, {}
        self.provenance = records.provenance(self.root)

    def start(self, wanted, report):
        """Submits every wanted program that has no valid outcome; `report` shows a line of progress."""
        due = []
        for program in wanted:
            if self.skipped(program):
                continue
            stored = self.outcomes.load(program)
            if self.fresh or not stored or stored["outcome"]["stopped"]:  # a limit may have been met by chance
                due.append(program)
        last = {program.page: program for program in due if notebook.is_notebook(program.page)}
        whole = {page: self.engine.submit(notebook.as_one(program)) for page, program in last.items()}  # not every cell with all before it
        for program in due:
            self.futures[program.id] = whole.get(program.page) or self.engine.submit(program)
        if self.futures:
            version = self.outcomes.environment["tensorflow"]
            report(f"running {len(self.futures)} of {len(wanted)} programs on TensorFlow {version}; its import takes several seconds")
        for message in self.outcomes.unreadable:
            report(message)

    def skipped(self, program):
        """Why the program is not run in this environment, or None if it is."""
        if self.only and program.page not in self.only:
            return f"{self.name} verifies only {', '.join(self.only)}"
        if "illustration" in program.attributes:
            return f"illustration: {program.attributes['illustration']}"
        return program.not_applicable(self.outcomes.environment)

    def check(self, program):
        """Returns why the program is not what the page shows, or None. Skips what does not apply here, with the reason."""
        if reason := self.skipped(program):
            pytest.skip(reason)
        try:
            outcome = self.outcome(program)
        except (EngineError, CancelledError, OSError) as error:
            return f"{program.place}: {error}"
        wrong = compare.mismatch(program, outcome)
        if wrong and self.update and (new := compare.updated(program, outcome)) is not None:
            self.edits.setdefault(program.page, []).append((program, new))
            return None  # the next run compares it
        return f"{program.place}: {wrong}" if wrong else None

    def outcome(self, program):
        """The program's outcome: from this run, or from the local store."""
        if program.id not in self.futures:
            if stored := self.outcomes.load(program):
                return stored["outcome"]
            raise EngineError("its stored outcome has gone meanwhile: run pytest again")
        outcome = self.futures[program.id].result()
        if notebook.is_notebook(program.page):
            outcome = notebook.of_cell(outcome, len(program.blocks) - 1)
        self.outcomes.save(program, outcome, self.provenance)
        return outcome

    def finish(self):
        """Ends the engine, writes what was asked for and returns a line about it."""
        self.engine.close()
        if self.record:
            record = records.verification(programs.read_site(self.root, self.only), self.outcomes)
            path = self.root / "docs" / "records" / "verification" / f"{self.record}.json"
            missing = [entry for entry in record["programs"] if entry["status"] == "never-run"]
            if not record["provenance"] or (missing and path.exists()):
                return f"did not write {path.relative_to(self.root)}: {len(missing)} of {len(record['programs'])} programs have not been run; delete it first to have it written all the same"
            records.write_json(path, record)
            return f"wrote {path.relative_to(self.root)}"
        count = 0
        for page, edits in self.edits.items():
            path = self.root / page
            text = path.read_text(encoding="utf-8-sig")
            present, problems = programs.collect(text, page)  # the page may have been edited since it was read
            text, changed = (text, 0) if problems else rewrite(text, [edit for edit in edits if edit[0] in present])
            path.write_text(text, encoding="utf-8")
            count += changed
        return f"rewrote {count} outputs: read the diff, then run again" if self.update else None


def rewrite(text, edits):
    """Returns (text, count) of a page with the outputs of `edits`, pairs of (program, new text), put in place."""
    lines = text.split("\n")
    for program, new in sorted(edits, key=lambda edit: -edit[0].line):
        indent = program.block.indent
        body = new.split("\n")[:-1]
        if notebook.is_notebook(program.page):
            body, whole = notebook.commented(body), notebook.output_cell(body)
        else:
            body = [indent + line if line else "" for line in body]
            whole = ["", indent + "```text", *body, indent + "```"]
        if program.stdout:
            lines[program.stdout.line : program.stdout.end - 1] = body
        else:
            lines[program.block.end : program.block.end] = whole
    return "\n".join(lines), len(edits)
