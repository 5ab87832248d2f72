"""What a visitor gets is what was run: blocks, clipboard, links, and nothing from another host."""

import html.parser
import random
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

from fieldguide import compare, programs, records

ROOT = Path(__file__).parents[2]
PROGRAMS = [program for program in programs.read_site(ROOT) if program.block.language == "python"]
PAGES = [path.relative_to(ROOT).as_posix() for path in programs.page_paths(ROOT)]


def built(page):
    """Where a page of docs/ lies in the built site."""
    path = page.removeprefix("docs/").removesuffix(".md").removesuffix(".py")
    return f"{path.removesuffix('index')}" if path.endswith("index") else f"{path}/"


class Blocks(html.parser.HTMLParser):
    """Collects the texts of the Python blocks, all ids, and all links of a page."""

    def __init__(self, text):
        super().__init__()
        self.blocks, self.ids, self.links, self.depth, self.inside = [], set(), [], 0, False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids |= {attributes["id"]} if attributes.get("id") else set()
        self.links += [attributes["href"]] if tag == "a" and attributes.get("href") else []
        if tag == "div":
            if self.depth or {"language-python", "highlight"} <= set((attributes.get("class") or "").split()):
                self.depth += 1
        if tag == "code" and self.depth:
            self.inside = True
            self.blocks.append("")

    def handle_endtag(self, tag):
        self.depth -= tag == "div" and self.depth > 0
        self.inside = self.inside and tag != "code"

    def handle_data(self, data):
        if self.inside:
            self.blocks[-1] += data


@pytest.fixture(scope="session")
def parsed(site):
    """{path in the site: Blocks} of every HTML page."""
    return {path.relative_to(site).as_posix(): Blocks(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def test_census_the_blocks_shown_are_the_blocks_collected(parsed):
    shown = [(page, code) for page in PAGES for code in parsed[built(page) + "index.html"].blocks]
    collected = [(program.page, program.block.code.strip("\n")) for program in PROGRAMS]
    assert [(page, code.strip("\n")) for page, code in shown] == collected
    others = {path for path, page in parsed.items() if page.blocks} - {built(page) + "index.html" for page in PAGES}
    assert not others, "a page shows Python that was not collected"


def test_every_link_inside_the_site_resolves(parsed, site):
    broken = []
    for path, page in parsed.items():
        if path == "404.html":
            continue
        for link in page.links:
            address, anchor = urldefrag(urljoin(f"http://site/{path}", link))
            target = urlsplit(address)
            if target.netloc != "site" or target.scheme != "http":
                continue
            file = unquote(target.path).lstrip("/")
            file += "index.html" if not file or file.endswith("/") else ""
            if not (site / file).is_file() or (anchor and file in parsed and unquote(anchor) not in parsed[file].ids):
                broken.append(f"{path}: {link}")
    assert not broken


def test_no_page_takes_over_ten_minutes_to_read(site):
    slow = {}
    for path in site.rglob("index.html"):
        article = re.search(r"<article.*?</article>", path.read_text(encoding="utf-8"), re.S)
        text = re.sub(r"<(script|details|svg|div class=\"measured\").*?</(script|details|svg|div)>", "", article[0] if article else "", flags=re.S)
        words = len(re.sub(r"<[^>]+>", " ", re.sub(r"</?(span|code|a)\b[^>]*>", "", text)).split())  # code and outputs count as prose does; tables of measurements are looked up, not read
        if words > 10 * 200:
            slow[path.relative_to(site).as_posix()] = words
    assert not slow


@pytest.fixture(scope="session")
def visited(home, browser):
    """Every page on a telephone: what the copy button of each Python block gives, per page; and what the pages did that they must not."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"], viewport={"width": 360, "height": 800})
    page = context.new_page()
    told = []
    page.on("console", lambda message: message.type == "error" and told.append(f"{page.url}: console: {message.text}"))
    page.on("pageerror", lambda error: told.append(f"{page.url}: {error}"))
    page.on("request", lambda request: request.url.startswith(("data:", "blob:", home)) or told.append(f"{page.url}: request to {request.url}"))
    copied = {}
    for path in PAGES:
        page.goto(home + built(path), wait_until="networkidle")
        width = page.evaluate("document.documentElement.scrollWidth")
        told += [f"{path}: {width} px wide on a telephone of 360"] if width > 360 else []
        copied[path] = page.evaluate("""async () => {
            const texts = []
            for (const block of document.querySelectorAll(".language-python.highlight")) {
                await navigator.clipboard.writeText("")
                block.querySelector(".md-code__button[data-clipboard-target], [data-clipboard-target]").click()
                for (let i = 0; i < 50 && !(await navigator.clipboard.readText()); i++) await new Promise(done => setTimeout(done, 10))
                texts.push(await navigator.clipboard.readText())
            }
            return texts
        }""")
    context.close()
    return copied, told


def test_the_copy_button_gives_the_program_that_ran(visited):
    copied, _ = visited
    assert {page: texts for page, texts in copied.items()} == {page: [program.text for program in PROGRAMS if program.page == page] for page in PAGES}


def test_no_console_error_no_request_to_another_host_and_no_page_too_wide_for_a_telephone(visited):
    assert not visited[1]


def test_ten_copied_programs_do_under_python_what_the_page_shows(visited, tmp_path):
    environment = records.environment(ROOT, sys.executable)
    runnable = [program for program in PROGRAMS if "illustration" not in program.attributes and not program.not_applicable(environment)]
    chosen = random.Random(20210901).sample(runnable, min(10, len(runnable)))
    copied = {program.id: text for page, texts in visited[0].items() for program, text in zip([p for p in PROGRAMS if p.page == page], texts)}

    def run(program):
        path = tmp_path / f"{runnable.index(program)}" / "program.py"
        path.parent.mkdir()
        path.write_text(copied[program.id], encoding="utf-8")
        return subprocess.run([sys.executable, path.name], cwd=path.parent, capture_output=True, text=True, timeout=120)

    with ThreadPoolExecutor(2) as pool:
        for program, done in zip(chosen, pool.map(run, chosen)):
            told = f"{program.place}\n{done.stdout}\n{done.stderr[-2000:]}"
            if "raises" in program.attributes:
                last = done.stderr.strip().splitlines()
                assert done.returncode == 1 and any(program.attributes["raises"] in line for line in last), told
            elif "exits" in program.attributes:
                assert done.returncode != 0 or program.attributes["exits"] == "0", told
            else:
                printed = done.stdout
                if program.expected is not None:
                    tail = printed.strip("\n").split("\n")[-len(program.expected.strip("\n").split("\n")):]
                    assert done.returncode == 0 and compare.matches(program.expected, "\n".join(tail), {".ellipsis", ".digits"} & set(program.stdout.attributes)), told
                else:
                    assert done.returncode == 0, told
