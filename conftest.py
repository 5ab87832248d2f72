"""`pytest docs` runs the code on the pages: see docs/contributing.md."""

from pathlib import Path

import pytest

from fieldguide.programs import Program
from fieldguide.records import RecordError
from fieldguide.verify import Pages, Verification

ROOT = Path(__file__).parent
pages = Pages(ROOT, patterns=["*.md", "*.py"], path=str(ROOT / "docs"))
pytest_collect_file = pages.pytest()


class NotAModule(pytest.Module):
    """A text notebook named on the command line, which pytest would import besides."""

    def collect(self):
        return []


def pytest_pycollect_makemodule(module_path, parent):
    return NotAModule.from_parent(parent, path=module_path) if module_path.is_relative_to(ROOT / "docs") else None


def pytest_addoption(parser):
    group = parser.getgroup("pages")
    group.addoption("--fresh", action="store_true", help="run every program, even those with a valid stored outcome")
    group.addoption("--update-outputs", action="store_true", help="rewrite expected outputs from what came out")
    group.addoption("--environment", metavar="NAME", help="verify under an environment of pyproject.toml")
    group.addoption("--record", metavar="NAME", help="write docs/records/verification/NAME.json at the end")


def pytest_collection_finish(session):
    wanted = [item.example.parsed for item in session.items if hasattr(item, "example") and isinstance(item.example.parsed, Program)]
    if wanted and not session.config.option.collectonly:
        try:
            pages.verification = Verification(session.config)
        except RecordError as error:
            pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
        pages.verification.start(wanted, session.config.get_terminal_writer().line)


def pytest_sessionfinish(session):
    if pages.verification and (message := pages.verification.finish()):
        session.config.get_terminal_writer().line("\n" + message)
        session.exitstatus = session.exitstatus or int(message.startswith("did not"))
