"""From a page's Markdown and the evidence to the Markdown that is published: small functions, each text in, text out.

Comment markers stand for evidence: `<!-- measured BENCHMARK VIEW -->` (measurements.py) and `<!-- evidence TABLE -->` (below).
"""

import html
import json
import re
from itertools import zip_longest

from packaging.version import Version

from fieldguide import downloads, fences, measurements, notebook, programs

MARKER = re.compile(fences.INLINE_CODE.pattern + r"|<!--\s*(?P<kind>[\w-]+)(?P<words>.*?)\s*-->")  # in backticks it is text
UNREAD = re.compile(r"<!--\W*(measured|evidence)\b")
NOT_SHOWN = re.compile(r'<!--.*?-->|<(script|style|template)\b.*?</\1>|<td class="linenos">.*?</td>', re.S)
SYMBOL = re.compile(r"(?<!`)\[`([\w.]+)`\]\[\]")


class PageError(Exception):
    """A page cannot be built: the message has its place and the remedy."""


def render(markdown, page, site, symbols, warn):
    """The page as it is published. page: its path, such as docs/guide/modes.md; warn(message) is called for what may not be published."""
    found, problems = programs.collect(markdown, page)
    for problem in problems:
        warn(f"{page}:{problem.line}: {problem.message}")
    for program in site.pages.get(page, []):
        if (reason := site.unproven(program)) and (site.runs_here(program) or reason.startswith("failed")):
            warn(f"{program.place}: this program {reason}: run `make verify` and mend the page or the program")
        for record in site.stale(program):
            warn(f"{program.place}: not run in its present form on TensorFlow {record['environment']['tensorflow']}: run `make records`")
    inside = {number for fence in fences.read(markdown)[0] for number in range(fence.line, fence.end + 1)}
    lines = fill(markdown.split("\n"), inside, page, site)
    lines = link_symbols(lines, inside, page, symbols)
    lines = add_stamp(lines, inside, stamp(site.pages.get(page, []), site))
    return "\n".join(decorate(lines, list(zip(found, site.pages.get(page, []))), site))  # last, since it moves lines


def census(content, markdown, page, found):
    """What is wrong with the code that a page's HTML shows: all of it must be the page's fences, and all Python the programs `found`."""
    written, problems = fences.read(notebook.as_markdown(markdown) if notebook.is_notebook(page) else markdown)
    if problems:
        return  # told before
    blocks = re.findall(r"<pre\b[^>]*>(.*?)</pre>", NOT_SHOWN.sub("", content), re.S)
    for fence, shown in zip_longest(written, (html.unescape(re.sub("<[^>]*>", "", block)) for block in blocks)):
        if not fence or shown is None or fence.code.strip("\n") != shown.strip("\n"):
            told = (shown or "nothing").strip().partition("\n")[0][:60]
            yield f"{page}{f':{fence.line}' if fence else ''}: the HTML shows {told!r} where {'this fence' if fence else 'no fence'} stands: write code as a fence of its own"
            break
    if [fence.code for fence in written if fence.language == "python"] != [each.block.code for each in found if each.block.language == "python"]:
        yield f"{page}: its Python is not collected: pages with code are .md files"


def decorate(lines, pairs, site):
    """Titles and classes on code and output, and a note under what is not verified. pairs: (program in `lines`, the site's program)."""
    lines = list(lines)
    for program, known in reversed(pairs):
        block, last = program.block, program.stderr or program.stdout or program.block
        if reason := site.unproven(known):
            lines[last.end : last.end] = ["", f'{block.indent}<p class="unproven">Not verified: this program {html.escape(reason)}.</p>', ""]
        for fence, language, title in reversed([
            (block, "python" if block.language == "python" else "console", condition_title(program)),
            (program.stdout, "text .output .no-copy", program.attributes.get("raises", "")),
            (program.stderr, "text .output .no-copy", "stderr"),
        ]):
            if fence:
                lines[fence.line - 1] = fence_line(lines[fence.line - 1], fence, language, title)
    return lines


def fence_line(line, fence, language, title):
    name, *classes = language.split()
    kept = [f'{key}="{value}"' for key, value in fence.attributes.items() if key in ("hl_lines", "linenums")]
    title = " · ".join(filter(None, [fence.attributes.get("title"), title])).replace('"', "”")
    braces = " ".join([*classes, *([".annotate"] if ".annotate" in fence.attributes else []), *([f'title="{title}"'] if title else []), *kept])
    ticks = re.match(r"\s*([`~]+)", line)[0]
    return f"{ticks}{name}" + (f" {{{braces}}}" if braces else "")


def condition_title(program):
    """What a reader must know before running the block: where it holds, that it ends the process, or that it is not run."""
    attributes = program.attributes
    if "illustration" in attributes:
        return f"Not run: {attributes['illustration']}"
    names = {"tf": "TensorFlow", "keras": "Keras", "python": "Python"}
    parts = [f"{names[key]} {attributes[key].replace('>=', '≥ ').replace('<=', '≤ ').replace('<', '< ').replace('==', '').replace(',', ', ')}" for key in names if key in attributes]
    parts += ["needs a GPU"] if "device" in attributes else []
    parts += [f"ends its process: {attributes['exits']}"] if "exits" in attributes else []
    return " · ".join(parts)


def fill(lines, inside, page, site):
    """Replaces the comment markers outside fences (`inside` are their lines); one that is unknown or cannot be filled is a PageError."""
    up = "../" * (page.count("/") - page.endswith("/index.md")) + "evidence/"

    def replacement(match, number):
        if not match["kind"]:
            return match[0]
        kind, words = match["kind"], match["words"].split()
        try:
            if kind == "measured" and len(words) >= 2:
                records = [{**record, "url": up + downloads.measurement_path(record)} for record in site.measurements(words[0])]
                return measurements.view(words[0], words[1], words[2:], records)
            if kind == "evidence" and len(words) == 1 and words[0] in EVIDENCE:
                return EVIDENCE[words[0]](site)
        except (measurements.MeasurementError, ValueError) as error:
            raise PageError(f"{page}:{number}: {error}") from None
        if kind in ("more", "prettier-ignore"):
            return match[0]
        known = ", ".join(f"evidence {name}" for name in EVIDENCE)
        raise PageError(f"{page}:{number}: unknown marker {match[0]!r}: known are `measured BENCHMARK VIEW` and {known}; other comments do not belong on a page")

    lines = [line if number in inside else MARKER.sub(lambda match: replacement(match, number), line) for number, line in enumerate(lines, 1)]
    rest = "\n".join("" if number in inside else fences.INLINE_CODE.sub("", line) for number, line in enumerate(lines, 1))
    if unread := UNREAD.search(rest):
        raise PageError(f"{page}: cannot read the marker {unread[0]!r}…: write it as `<!-- {unread[1]} … -->` on one line")
    return lines


def link_symbols(lines, inside, page, symbols):
    """[`tf.function`][] becomes a link to TensorFlow's API reference; symbols: name -> URL, or None where TensorFlow has no such name."""
    def link(match, number):
        if not symbols.get(match[1]):
            raise PageError(f"{page}:{number}: the installed TensorFlow has no {match[1]}: correct the name, or write it without [][]")
        return f"[`{match[1]}`]({symbols[match[1]]})"

    return [line if number in inside else SYMBOL.sub(lambda match: link(match, number), line) for number, line in enumerate(lines, 1)]


def add_stamp(lines, inside, stamp):
    """Puts the stamp under the page's first heading, or at the end of a page that has none."""
    at = next((number for number, line in enumerate(lines, 1) if number not in inside and line.startswith("# ")), len(lines))
    return [*lines[: at - 1], f"{lines[at - 1]}\n\n{stamp}\n", *lines[at:]] if stamp else lines


def stamp(found, site):
    """How many programs of a page ran, where, when, at which commit; as HTML."""
    found = [program for program in found if "illustration" not in program.attributes]
    if not found:
        return ""
    rows, passed, failed, versions = [], set(), set(), set()
    for index, record in enumerate(site.records):
        entries = [dict(site.results(program)[index][1] or {"status": "stale"}, id=program.id) for program in found]
        if not any(entry["status"] in ("passed", "failed") for entry in entries):
            continue
        counts = {status: sum(entry["status"] == status for entry in entries) for status in ("passed", "failed", "not-applicable", "never-run", "stale")}
        passed |= {entry["id"] for entry in entries if entry["status"] == "passed"}
        failed |= {entry["id"] for entry in entries if entry["status"] == "failed"}
        versions |= {record["environment"]["tensorflow"]} if counts["passed"] else set()
        told = "; ".join(f"{count} {status.replace('-', ' ')}" for status, count in counts.items() if count)
        rows.append(f"<tr><td>{environment_text(record['environment'])}</td><td>{told}</td><td>{provenance_text(record['provenance'])}</td></tr>")
    passed -= failed
    summary = f"{len(passed)} of {len(found)} programs on this page ran as shown" + (f", on TensorFlow {versions_text(versions)}" if versions else "")
    table = f"<table><thead><tr><th>Environment</th><th>Programs</th><th>Run</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f'<details class="stamp{"" if len(passed) == len(found) else " incomplete"}"><summary>{summary}</summary>{table}</details>'


def versions_text(versions):
    """Which versions, in few words."""
    versions = sorted(versions, key=Version)
    return " and ".join(versions) if len(versions) < 3 else f"{versions[0]} to {versions[-1]} ({len(versions)} versions)"


def environment_text(environment):
    """An environment in one line."""
    parts = [f"TensorFlow {environment['tensorflow']}", f"Keras {environment['keras']}", f"NumPy {environment['numpy']}", f"Python {environment['python']}",
             environment["os"], f"{environment['cpu']}, {environment['cores']} cores", environment["gpu"] or "no GPU"]
    for key, name in (("driver", "driver"), ("cuda_runtime", "CUDA"), ("cudnn_runtime", "cuDNN")):
        parts += [f"{name} {environment[key]}"] if environment["gpu"] and environment[key] else []
    parts += [f"{name}={value}" for name, value in {**environment["threads"], **environment["flags"]}.items()]
    return html.escape(", ".join(parts))


def provenance_text(provenance):
    """Date, commit and the state of the tree of a run."""
    commit = f"commit {provenance['commit'][:10]}" if provenance["commit"] else "no commit"
    return f"{provenance['date'][:10]}, {commit}" + (", with uncommitted changes" if provenance["dirty"] else "")


def program_data(found):
    """The page's programs as JSON in a script element, in the order of its blocks: what the copy buttons give."""
    texts = json.dumps([program.text for program in found if program.block.language == "python"]).replace("<", "\\u003c")  # or a <!-- in it swallows the page
    return f'<script type="application/json" id="programs">{texts}</script>'


def environments_table(site):
    """Every environment that has a record, with the counts of its programs."""
    rows = ["| Environment | Passed | Failed | Not applicable | Never run | Run |", "|---|---|---|---|---|---|"]
    for record in site.records:
        counts = [sum(entry["status"] == status for entry in record["programs"]) for status in ("passed", "failed", "not-applicable", "never-run")]
        cells = [environment_text(record["environment"]), *map(str, counts), provenance_text(record["provenance"])]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def exceptions_list(site):
    """Programs that are illustrations or have passed nowhere, with the reason."""
    rows = [f"- `{program.place}`: illustration: {program.attributes['illustration']}" for program in site.programs if "illustration" in program.attributes]
    rows += [f"- `{program.place}`: {reason}" for program in site.programs if (reason := site.unproven(program))]
    return "\n".join(rows) or "None: every program on the site has been run in its present form."


def totals(site):
    """How many programs the site has and on how many pages."""
    return f"{len(site.programs)} programs on {len(site.pages)} pages"


def build(site):
    """Where and when the programs were run for this build."""
    if not site.own["provenance"]:
        return "nowhere yet"
    return f"{environment_text(site.own['environment'])} ({provenance_text(site.own['provenance'])})"


EVIDENCE = {"build": build, "environments": environments_table, "exceptions": exceptions_list, "totals": totals}
