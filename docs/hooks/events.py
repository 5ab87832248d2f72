"""MkDocs events of the site, on one screen. The work is done by plain functions in fieldguide/."""

import re
import sys
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File
from mkdocs.structure.pages import Page
from mkdocs.utils import meta
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "snippets")]

from fieldguide import benchmarks, downloads, evidence, fences, measurements, notebook, pages, records, symbols  # noqa: E402  (a hook's folder is on the path only while it loads)

ERRORS = (pages.PageError, measurements.MeasurementError, records.RecordError)
log = get_plugin_logger("fieldguide")
site = urls = serving = None


def on_startup(command, dirty):
    """Before a build: measures what has no valid record. While serving, any record will do, and a quick one if there is none."""
    global serving
    serving = command == "serve"
    folder = ROOT / ".cache" / "measurements"
    try:
        environment = records.environment(ROOT, sys.executable)
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
    jupyter = config.plugins["mkdocs-jupyter"].config
    jupyter["execute"] = not serving  # a writer does not wait for it; its cells are verified like all blocks
    jupyter["cache_dir"] = str(ROOT / ".cache" / "mkdocs-jupyter" / (records.digest(site.environment) + "-serve" * serving))


def on_files(files, config):
    """Adds what readers download: the notebooks, the snippets alone and with what they import, and the evidence as JSON."""
    for file in [each for each in files if notebook.is_notebook(each.src_uri)]:
        folder = config.site_url and config.site_url + file.src_uri.rpartition("/")[0] + "/"
        files.append(File.generated(config, file.src_uri[:-3] + ".ipynb", content=notebook.download(file.content_string, folder)))
    for path, content in downloads.of_snippets(ROOT / "snippets") + downloads.of_evidence(site, measurements.names(ROOT)):
        files.append(File.generated(config, path, content=content))


def on_pre_page(page, config, files):
    """mkdocs-jupyter has taken over the rendering of a notebook: let it run the cells in a kernel, then show the page like every other."""
    if notebook.is_notebook(page.file.src_uri):
        run, name = page.render, f"docs/{page.file.src_uri}"

        def render(config, files):
            try:
                run(config, files)
            except CellExecutionError as error:
                raise PluginError(f"{name}: in a Jupyter kernel a cell raised {error.ename}: {error.evalue}") from None
            if wrong := not serving and notebook.disagreement(site.pages[name], page.content):
                raise PluginError(wrong)
            Page.render(page, config, files)

        page.render = render


def on_page_markdown(markdown, page, config, files):
    source = page.file.content_string
    if notebook.is_notebook(page.file.src_uri):
        source = notebook.as_markdown(source)
        page.meta = meta.get_data(source)[1]
    try:
        return pages.render(fences.body(source), f"docs/{page.file.src_uri}", site, urls, log.warning)
    except ERRORS as error:
        raise PluginError(str(error)) from None


def on_page_content(html, page, config, files):
    name = f"docs/{page.file.src_uri}"
    found = site.pages.get(name, [])
    for problem in pages.census(html, page.file.content_string, name, found):
        log.warning(problem)
    return html + pages.program_data(found) if found else html


def on_post_page(output, page, config):
    """Puts the site's own worker in front of the theme's search."""
    return re.sub(r'"([./]*)(assets/javascripts/workers/search\.\w+\.min\.js)"', r'"\1scripts/search-worker.js?theme=../\2"', output)
