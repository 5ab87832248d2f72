"""Text notebooks (jupytext's percent format, docs/**/*.py): the page of one, so that its cells are verified like every block.

A code cell begins with `# %%`, prose with `# %% [markdown]`. What a code cell prints stands after it in a text fence, in a cell
`# %% [markdown] tags=["expected"]`; readers see the output of the executed notebook in its place.
"""

import re

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
