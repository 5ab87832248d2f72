"""MkDocs events of the site, on one screen. The work is done by plain functions in fieldguide/."""

import json
import re
import sys
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "snippets")]

from fieldguide import benchmarks, downloads, evidence, pages, records, symbols  # noqa: E402  (a hook's folder is on the path only while it loads)
from fieldguide.measurements import MeasurementError  # noqa: E402

ERRORS = (pages.PageError, MeasurementError, records.RecordError)
log = get_plugin_logger("fieldguide")
site = urls = None


def on_startup(command, dirty):
    """Before a build: measures what has no valid record. While serving, any record will do, and a quick one if there is none."""
    environment = records.environment(ROOT, sys.executable)
    folder = ROOT / ".cache" / "measurements"
    try:
        if command == "build" and not benchmarks.valid(ROOT, "training_modes", environment):
            benchmarks.measure(ROOT, "training_modes", environment, folder, log=log.info)
        elif command == "serve" and not benchmarks.stored(ROOT, "training_modes"):
            benchmarks.measure(ROOT, "training_modes", environment, folder, quick=True, log=log.info)
    except ERRORS as error:
        raise PluginError(str(error)) from None


def on_config(config):
    global site, urls
    try:
        site = evidence.Site(ROOT, sys.executable)
        urls = symbols.urls(ROOT, sys.executable, site.environment["tensorflow"])
        site.records
    except ERRORS as error:
        raise PluginError(str(error)) from None


def on_files(files, config):
    """Adds what readers download: the snippets, alone and with what they import."""
    for path, content in downloads.of_snippets(ROOT / "snippets"):
        files.append(File.generated(config, path, content=content))


def on_page_markdown(markdown, page, config, files):
    try:
        return pages.render(markdown, f"docs/{page.file.src_uri}", site, urls, log.warning)
    except ERRORS as error:
        raise PluginError(str(error)) from None


def on_page_content(html, page, config, files):
    found = site.pages.get(f"docs/{page.file.src_uri}", [])
    return html + pages.program_data(found) if found else html


def on_post_page(output, page, config):
    """Puts the site's own worker in front of the theme's search."""
    return re.sub(r'"([./]*)(assets/javascripts/workers/search\.\w+\.min\.js)"', r'"\1scripts/search-worker.js?theme=../\2"', output)


def on_post_build(config):
    """Writes the evidence for machines."""
    folder = Path(config.site_dir) / "evidence"
    for path, record in downloads.of_evidence(site, benchmarks.names(ROOT)):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(json.dumps(record, indent=1), encoding="utf-8")
