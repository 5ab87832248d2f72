"""Fixtures shared by the tests of the machinery. Pages are collected by the conftest.py above, never from here."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fieldguide import programs
from fieldguide.engine import Engine

ROOT = Path(__file__).parents[1]


def program(code, output=None, attributes="", output_attributes=""):
    """The program of a page that holds just this block."""
    text = f"```python{attributes and ' {' + attributes + '}'}\n{code}\n```\n"
    if output is not None:
        text += f"\n```text{output_attributes and ' {' + output_attributes + '}'}\n{output}\n```\n"
    found, problems = programs.collect(text, "docs/page.md")
    assert not problems, problems
    return found[0]


@pytest.fixture(scope="session")
def engine():
    """An engine with TensorFlow imported and limits that tests can wait for: 5 s, 1 GiB, 64 KiB."""
    engine = Engine(ROOT, seconds=5, resident=2**30, output=2**16)
    yield engine
    engine.close()


@pytest.fixture
def project(tmp_path):
    """A folder laid out like this project, with the real machinery and no pages: `write(page, text)` and `pytest(*words)`."""
    return Project(tmp_path)


class Project:
    def __init__(self, root):
        self.root = root
        shutil.copytree(ROOT / "docs" / "hooks", root / "docs" / "hooks", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "snippets", root / "snippets", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("conftest.py", "pyproject.toml"):
            shutil.copy(ROOT / name, root)
        settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
        (root / "mkdocs.yml").write_text(settings.partition("\nnav:")[0], encoding="utf-8")

    def write(self, page, text):
        path = self.root / "docs" / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def run(self, *command, **options):
        return subprocess.run([sys.executable, "-m", *command], cwd=self.root, capture_output=True, text=True, timeout=300, **options)

    def pytest(self, *words):
        return self.run("pytest", "docs", "-q", "-p", "no:cacheprovider", *words)
