"""Reading pages: what is a block, what belongs to it, and what is refused at which line."""

import pytest

from fieldguide import programs

GOOD = '''---
title: Page
---

# Heading

```python
x = 1
```

```python {.continues raises="NameError" title="A title"}
print(y)
```

```text
name 'y' is not defined
```

## With an anchor { #here }

=== "Old"

    ```python {keras="<3"}
    print("old")
    ```

    ```text
    old
    ```

=== "New"

    ```python {keras='>=3'}
    print("new")
    ```

    ```text
    new
    ```

    ```python {.continues}
    z = 2
    ```

````markdown
```python
this is text
```
````

<!-- a comment
```python
so is this
```
-->

~~~python
print("tildes")
~~~

~~~text
tildes
~~~

```text {.stderr}
a line
```
'''


def test_a_page_gives_its_programs_in_order():
    found, problems = programs.collect(GOOD, "docs/page.md")
    assert not problems
    assert [(program.line, program.id) for program in found] == [
        (7, "page.md#heading-1"), (11, "page.md#heading-2"), (23, "page.md#here-1"), (33, "page.md#here-2"), (41, "page.md#here-3"), (57, "page.md#here-4"),
    ]
    assert found[1].text == "x = 1\n\nprint(y)\n"
    assert found[1].expected == "name 'y' is not defined\n"
    assert found[2].attributes == {"keras": "<3"} and found[2].expected == "old\n"
    assert found[4].text == 'print("new")\n\nz = 2\n', "a block in a tab continues the one in its own tab"
    assert found[4].attributes["keras"] == ">=3", "a chain inherits its members' conditions"
    assert found[5].expected == "tildes\n" and found[5].stderr.code == "a line\n"


BROKEN = {
    "unknown class": ("```python {.continus}\n1\n```", 1, "unknown attribute '.continus'"),
    "unknown key": ('```python {raise="X"}\n1\n```', 1, "unknown attribute 'raise'"),
    "unknown key of an output": ("```python\nprint(1)\n```\n\n```text {.fresh}\n1\n```", 5, "unknown attribute '.fresh'"),
    "unquoted rest": ("```python {.continues oops}\n1\n```", 1, "cannot read the attribute at 'oops'"),
    "brace missing": ("```python {.continues\n1\n```", 1, "cannot read the fence line"),
    "attributes outside braces": ("```python title=x\n1\n```", 1, "cannot read the fence line"),
    "no space before the brace": ("```python{.fresh}\n1\n```", 1, "cannot read the fence line"),
    "language in the braces": ("```{.python}\n1\n```", 1, "cannot read the fence line"),
    "never closed": ("text\n\n```python\n1\n", 3, "never closed"),
    "touching fences": ("```python\nprint(1)\n```\n```text\n1\n```", 4, "blank line"),
    "behind a quote mark": ("> ```python\n> 1\n> ```", 1, "quote or list mark"),
    "behind a list mark": ("- ```python\n  1\n  ```", 1, "quote or list mark"),
    "nothing to continue": ("```python {.continues}\n1\n```", 1, "no earlier block"),
    "nothing left to continue": ('```python {raises="E"}\n1\n```\n\n```python {.continues}\n1\n```', 5, "no earlier block"),
    "continues another tab": ('=== "A"\n\n    ```python\n    a = 1\n    ```\n\n=== "B"\n\n    ```python {.continues}\n    a\n    ```', 9, "no earlier block"),
    "environment before the import": ('```python\nimport os\nos.environ["A"] = "1"\nimport tensorflow\n```', 1, "add .fresh"),
    "environment set by a method": ('```python\nimport os\nos.environ.setdefault("A", "1")\nfrom tensorflow import nn\n```', 1, "add .fresh"),
    "nothing but an ellipsis": ("```python\nprint(1)\n```\n\n```text {.ellipsis}\n...\n```", 1, "proves nothing"),
    "output of nothing": ("```text {.ellipsis}\na...\n```", 1, "belongs to no program"),
    "less indented than its fence": ('=== "A"\n\n    ```python\n    a = 1\nb = 2\n    ```\n', 5, "less indented"),
    "closed less indented": ('=== "A"\n\n    ```python\n    a = 1\n```\n', 3, "indented like this one"),
    "a fence whose end is missing": ("```python\nprint(1)\n```\n\n```text\n1\n\n## More\n\n```python\nprint(2)\n```", 10, "closing fence above it missing"),
    "a comment that never ends": ("<!-- x\n\n```python\n1\n```", 1, "never closed"),
    "a language that only looks like Python": ("```sage\n1\n```", 1, "neither run nor compared"),
    "a command for a shell": ("```console\n$ python snippets/x.py && echo x\n```", 1, "without a shell"),
    "an output of no language": ("```python {raises=\"E\"}\n1\n```\n\n```\nx\n```", 5, "nothing is compared with"),
    "a second output": ("```python\nprint(1)\n```\n\n```text\n1\n```\n\n```text\n1\n```", 9, "a second output"),
    "raises and exits": ('```python {raises="E" exits="1"}\n1\n```', 1, "either raises or exits"),
    "an illustration with output": ('```python {illustration="why"}\nprint(1)\n```\n\n```text\n1\n```', 1, "an illustration is not run"),
    "not a version": ('```python {tf="new"}\n1\n```', 1, "not a version condition"),
    "not a device": ('```python {device="tpu"}\n1\n```', 1, 'only condition is device="gpu"'),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_fence_is_one_problem_with_line_and_remedy(name):
    text, line, message = BROKEN[name]
    _, problems = programs.collect(text, "docs/page.md")
    assert [(problem.line, message in problem.message) for problem in problems] == [(line, True)], problems


@pytest.mark.parametrize("language", ["py", "python3", "Python", "ipython", "pycon"])
def test_languages_that_would_not_be_run_are_refused(language):
    _, problems = programs.collect(f"```{language}\n1\n```", "docs/page.md")
    assert len(problems) == 1 and "write python" in problems[0].message


def test_after_a_problem_the_rest_of_the_page_is_read():
    found, problems = programs.collect("```py\n1\n```\n\n```python\n2\n```\n", "docs/page.md")
    assert len(found) == len(problems) == 1


def test_a_fresh_block_may_set_the_environment():
    assert not programs.collect('```python {.fresh}\nimport os\nos.environ["A"] = "1"\nimport tensorflow\n```', "docs/page.md")[1]


def test_a_comment_mark_in_code_hides_nothing():
    assert len(programs.collect("Write `<!--` to begin.\n\n```python\n1\n```\n", "docs/page.md")[0]) == 1


def test_conditions_of_a_chain_must_all_hold():
    found, _ = programs.collect('```python {tf=">=2.16"}\n1\n```\n\n```python {.continues tf=">=2.10"}\n1\n```\n', "docs/page.md")
    here = {"tensorflow": "2.15.1", "keras": "2.15", "python": "3.11", "gpu": None}
    assert found[1].not_applicable(here)
