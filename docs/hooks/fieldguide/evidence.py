"""The evidence a build works with: the site's programs, and what became of each in every environment that has a record."""

from functools import cache, cached_property
from pathlib import Path

from fieldguide import benchmarks, programs, records


class Site:
    """root: the project's folder; python: the interpreter whose environment is this build's own."""

    def __init__(self, root, python):
        self.root = Path(root)
        self.environment = records.environment(self.root, python)
        self.programs = programs.read_site(self.root)
        self.pages = {}
        for program in self.programs:
            self.pages.setdefault(program.page, []).append(program)
        self.outcomes = records.Outcomes(self.root / ".cache" / "outcomes", self.environment)
        self.own = records.verification(self.programs, self.outcomes)

    @cached_property
    def records(self):
        """All verification records, this build's own first, without those of the same environment that it replaces."""
        found = [self.own] if self.own["provenance"] else []
        for path in sorted((self.root / "docs" / "records" / "verification").glob("*.json")):
            record = records.read_verification(path)
            if not found or record["environment"] != self.environment:
                found.append(record)
        return found

    @cached_property
    def _entries(self):
        return [{(entry["page"], entry["source"]): entry for entry in record["programs"]} for record in self.records]

    def results(self, program):
        """[(record, entry)] of the program in its present form; entry is None where a record has only another form of it."""
        return [(record, entries.get((program.page, program.source))) for record, entries in zip(self.records, self._entries)]

    def unproven(self, program):
        """Why a reader may not take the program as verified, or None: it must have passed in some record and failed in none."""
        entries = [entry for _, entry in self.results(program) if entry]
        failed = next((entry for entry in entries if entry["status"] == "failed"), None)
        if failed:
            return f"failed when it was run: {failed['reason']}"
        if "illustration" in program.attributes or any(entry["status"] == "passed" for entry in entries):
            return None
        return "has not been run in its present form" if self.runs_here(program) else "has never been run: it " + program.not_applicable(self.environment)

    def runs_here(self, program):
        """Whether the program belongs to this build's environment, so that publishing it unproven has no excuse."""
        return not program.not_applicable(self.environment)

    def stale(self, program):
        """The records that know this page, but not this program in its present form."""
        return [
            record for record, entry in self.results(program)
            if entry is None and any(each["page"] == program.page for each in record["programs"])
        ]

    @cache
    def measurements(self, benchmark):
        """The records of a benchmark: this build's own first, then those of other environments."""
        found = benchmarks.stored(self.root, benchmark)
        return sorted(found, key=lambda record: record["environment"] != self.environment)
