"""A text notebook is verified like a page: same line numbers, one chain, outputs in hidden cells that --update-outputs rewrites."""

from fieldguide import notebook, programs, verify

NOTEBOOK = '''# ---
# title: Notebook
# ---

# %% [markdown]
# # Heading
#
# Some *prose*.

# %%
x = 1
print(x)

# %% [markdown] tags=["expected"]
# ```text
# 1
# ```

# %%
# a comment of the code
print(x + 1)
'''


def test_cells_are_a_chain_at_their_true_lines():
    found, problems = programs.collect(NOTEBOOK, "docs/notebook.py")
    assert not problems
    assert [(program.line, program.id, program.expected) for program in found] == [(10, "notebook.py#heading-1", "1\n"), (19, "notebook.py#heading-2", None)]
    assert found[1].text == "x = 1\nprint(x)\n\n# a comment of the code\nprint(x + 1)\n"
    assert notebook.as_markdown(NOTEBOOK).split("\n")[7] == "Some *prose*."


def test_outputs_are_rewritten_as_comments():
    found, _ = programs.collect(NOTEBOOK, "docs/notebook.py")
    text, count = verify.rewrite(NOTEBOOK, [(found[0], "a\n\nb\n"), (found[1], "2\n")])
    assert count == 2 and "# ```text\n# a\n#\n# b\n# ```\n" in text
    again, problems = programs.collect(text, "docs/notebook.py")
    assert not problems and [program.expected for program in again] == ["a\n\nb\n", "2\n"]
