"""Text notebooks (jupytext's percent format, docs/**/*.py): the page of one, so that its cells are verified like every block.

A code cell begins with `# %%`, prose with `# %% [markdown]`. What a code cell prints stands after it in a text fence, in a cell
`# %% [markdown] tags=["expected"]`. The build runs the notebook in a Jupyter kernel too, and refuses to publish another output.
"""

import html
import re
from dataclasses import replace

from fieldguide import compare

SEPARATOR = "\x1e"  # printed between the cells when they run as one program
CELL = re.compile(r"^# %%(?P<kind>.*)$")


def is_notebook(page):
    return str(page).endswith(".py")


def as_markdown(text):
    """The notebook as a Markdown page with the same line numbers: its code cells are one chain of Python blocks."""
    lines, in_code, first = [], False, True
    for line in [*text.rstrip().split("\n"), "", "# %% [markdown]"]:
        cell = CELL.match(line)
        if cell and in_code:
            # the fence is closed in the blank line that ends every code cell
            lines[-1] = "```" if not lines[-1].strip() else lines[-1]
        if cell:
            in_code = not cell["kind"].strip().startswith("[markdown]")
            lines.append(("```python" if first else "```python {.continues}") if in_code else "")
            first = first and not in_code
        else:
            lines.append(line if in_code else line.removeprefix("#").removeprefix(" "))
    return "\n".join(lines)


def output_cell(body):
    """The lines of a cell that holds what the code cell above it must print."""
    return ["", '# %% [markdown] tags=["expected"]', "# ```text", *commented(body), "# ```"]


def commented(body):
    return [f"# {line}".rstrip() for line in body]


def as_one(program):
    """The chain that ends in a notebook's cell as a program of one block, which prints SEPARATOR where a cell begins: one run tells of all its cells."""
    lines = []
    for block in program.blocks:
        lines += [""] * (block.line - 1 - len(lines)) + [f"print({SEPARATOR!r})"] + block.code.split("\n")[:-1]
    return replace(program, blocks=(replace(program.block, line=0, code="\n".join(lines) + "\n"),))


def of_cell(outcome, index):
    """What the cell at `index` did, from the outcome of as_one(). The cells behind one that failed have failed too."""
    texts = outcome["stdout"].split(SEPARATOR + "\n")[1:]
    completed = {"exception": None, "exit": None, "stopped": None} if index < len(texts) - 1 else {}
    return {**outcome, **completed, "stdout": texts[index] if index < len(texts) else ""}


def disagreement(programs, page):
    """Where a Jupyter kernel printed something else than the notebook shows, as a message, or None. page: the HTML that mkdocs-jupyter made of it."""
    cells = page.split('<div class="highlight-ipynb ')[1:]
    for program, cell in zip(programs, cells, strict=True):
        texts = re.findall(r'data-mime-type="text/plain"[^>]*>\s*<pre>(.*?)</pre>', cell, re.DOTALL)
        printed = html.unescape(re.sub(r"<[^>]+>", "", "".join(texts)))
        if not compare.matches(program.expected or "", printed):
            return f"{program.place}: in a Jupyter kernel this cell printed something else than the page shows:\n{printed}"
    return None


def download(text, folder=""):
    """The notebook as .ipynb (JSON), with the stated outputs as the cells' outputs. folder: the URL of its page's folder, for its links."""
    import jupytext
    from nbformat.v4 import new_output

    notebook, kept = jupytext.reads(text, fmt="py:percent"), []
    for cell in notebook.cells:
        if "expected" in cell.metadata.get("tags", []):
            kept[-1].outputs = [new_output("stream", name="stdout", text=re.sub(r"\A```text\n|```\s*\Z", "", cell.source))]
        elif cell.cell_type != "raw":  # the front matter
            cell.id = f"cell-{len(kept) + 1}"
            if folder:
                cell.source = re.sub(r"\]\(([\w-]+)\.md", rf"]({folder}\1/", cell.source)
            kept.append(cell)
    notebook.cells = kept
    return jupytext.writes(notebook, fmt="ipynb")
