"""What the build does, as commands (make puts docs/hooks and snippets on PYTHONPATH).

    python -m fieldguide measure [ENVIRONMENT]   run the benchmarks that have no valid record, write docs/records/measurements/
    python -m fieldguide environments            name the environments of pyproject.toml
    python -m fieldguide stage FOLDER            write the pages as published, as plain Markdown, for any other site generator
"""

import argparse
import shutil
import sys
from pathlib import Path

from fieldguide import benchmarks, environments, evidence, measurements, pages, records, symbols

ROOT = Path(__file__).resolve().parents[3]


def measure(environment):
    """Runs one benchmark after another; one that fails is told at the end and does not stop the others."""
    python = environments.interpreter(ROOT, environment) if environment else sys.executable
    described, failed = records.environment(ROOT, python), []
    for name in measurements.names(ROOT):
        try:
            if benchmarks.valid(ROOT, name, described):
                print(f"{name}: its record is valid")
            else:
                benchmarks.measure(ROOT, name, described, ROOT / "docs" / "records" / "measurements", python)
        except measurements.MeasurementError as error:
            failed.append(str(error))
    return failed


def name_environments(_):
    print(*environments.settings(ROOT))
    return []


def stage(folder):
    """Writes every file of docs/ that readers see to `folder`, the pages with their evidence filled in."""
    site = evidence.Site(ROOT, sys.executable)
    urls = symbols.urls(ROOT, sys.executable, site.environment["tensorflow"])
    shutil.copytree(ROOT / "docs", folder, ignore=lambda at, names: {"hooks", "records"} if Path(at) == ROOT / "docs" else (), dirs_exist_ok=True)
    for path in sorted(Path(folder).rglob("*.md")):
        page = f"docs/{path.relative_to(folder).as_posix()}"
        path.write_text(pages.render(path.read_text(encoding="utf-8"), page, site, urls, print), encoding="utf-8")
    return []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="fieldguide", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["measure", "environments", "stage"])
    parser.add_argument("argument", nargs="?", help="an environment of pyproject.toml, or a folder")
    options = parser.parse_args()
    try:
        problems = {"measure": measure, "environments": name_environments, "stage": stage}[options.command](options.argument)
    except (records.RecordError, pages.PageError, measurements.MeasurementError) as error:
        problems = [str(error)]
    sys.exit("\n".join(problems) or None)
