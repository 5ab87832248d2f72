"""`pytest docs` as an author meets it, on a small project: failures with place and remedy, reuse, and rewritten outputs."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import psutil

PAGE = """# Page

```python
import tensorflow as tf

print(tf.executing_eagerly())
```

```text
True
```

## More

```python
print(1 + 1)
```

```text
2
```
"""


def test_pages_pass_are_stored_and_are_not_run_again(project):
    project.write("page.md", PAGE)
    first = project.pytest("-vv")
    assert first.returncode == 0 and "running 2 of 2 programs" in first.stdout, first.stdout
    assert "docs/page.md::page-1:3 PASSED" in first.stdout and "docs/page.md::more-1:15 PASSED" in first.stdout
    again = project.pytest("-W", "error", "-k", "more")
    assert "1 passed, 1 deselected" in again.stdout and "running" not in again.stdout

    project.write("page.md", PAGE.replace("1 + 1", "3 - 1").replace("# Page\n", "# Page\n\nA line more.\n"))
    edited = project.pytest()
    assert "running 1 of 2 programs" in edited.stdout, "only the edited program runs again, though all lines moved"
    assert "running 2 of 2" in project.pytest("--fresh").stdout

    for path in (project.root / ".cache").rglob("*.json"):
        path.write_text(path.read_text()[:40])  # as a crash in mid-write would leave it, were writing not atomic
    damaged = project.pytest()
    assert damaged.returncode == 0 and damaged.stdout.count("is damaged: ignored, its program runs again") == 2
    assert "running 2 of 2" in damaged.stdout


def test_nothing_changed_imports_no_tensorflow(project):
    project.write("page.md", PAGE)
    project.pytest()
    probe = project.write("../conftest_probe.py", "import sys\ndef pytest_unconfigure(config): print('tensorflow imported:', 'tensorflow' in sys.modules)\n")
    again = project.pytest("-p", probe.stem)
    assert "tensorflow imported: False" in again.stdout and "2 passed" in again.stdout
    assert float(re.search(r"passed in ([\d.]+)s", again.stdout)[1]) < 3


def test_a_failure_names_page_line_and_difference(project):
    project.write("guide/page.md", PAGE.replace("\n2\n", "\n3\n"))
    done = project.pytest()
    assert done.returncode == 1 and "1 failed, 1 passed" in done.stdout
    assert "docs/guide/page.md:15: prints something else than the page shows:\n  - 3\n  + 2" in done.stdout
    assert "fieldguide" not in done.stdout, "no traceback of the machinery"


def test_a_broken_page_leaves_the_others_alone(project):
    project.write("broken.md", "# Broken\n\n```python {.fersh}\n1\n```\n\n```python\nnever closed\n")
    project.write("page.md", PAGE)
    done = project.pytest()
    assert "2 failed, 2 passed" in done.stdout
    assert "docs/broken.md:3: unknown attribute '.fersh'" in done.stdout and "docs/broken.md:7: this fence is never closed" in done.stdout
    assert "fieldguide/" not in done.stdout, "no traceback of the machinery"


def test_outputs_are_rewritten_and_the_page_then_passes(project):
    path = project.write("page.md", PAGE.replace("True", "False").replace("\n\n```text\n2\n```", "") + "\n```python {raises=\"KeyError\"}\n{}['a']\n```\n\n```text\n'b'\n```\n")
    done = project.pytest("--update-outputs")
    assert done.returncode == 0 and "rewrote 3 outputs" in done.stdout
    assert path.read_text() == PAGE + "\n```python {raises=\"KeyError\"}\n{}['a']\n```\n\n```text\n'a'\n```\n"
    assert project.pytest().returncode == 0


def test_a_condition_that_does_not_hold_is_told(project):
    project.write("page.md", '# Page\n\n```python {tf="<2"}\nimport tensorflow as tf\n```\n')
    done = project.pytest("-rs")
    assert "1 skipped" in done.stdout and "needs TensorFlow <2; here it is 2" in done.stdout


def test_an_unknown_environment_is_one_clear_error(project):
    project.write("page.md", PAGE)
    done = project.pytest("--environment", "tf9")
    assert done.returncode != 0 and "no environment 'tf9' in pyproject.toml; there are: tf2.20, " in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_record_holds_every_program_of_the_site(project):
    project.write("page.md", PAGE + '\n```python {tf="<2"}\n1\n```\n\n```python {illustration="why not"}\n1\n```\n')
    project.write("other.md", "# Other\n\n```python\nprint(2)\n```\n\n```text\n1\n```\n")
    project.pytest("--record", "main")
    record = json.loads((project.root / "docs/records/verification/main.json").read_text())
    assert (record["schema"], record["schema_version"]) == ("eager-and-graph/verification", 1)
    assert [(each["page"], each["line"], each["status"]) for each in record["programs"]] == [
        ("docs/other.md", 3, "failed"), ("docs/page.md", 3, "passed"), ("docs/page.md", 15, "passed"), ("docs/page.md", 23, "not-applicable"), ("docs/page.md", 27, "illustration"),
    ]
    assert record["programs"][3]["reason"].startswith("needs TensorFlow <2")
    assert str(project.root) not in json.dumps(record)


def test_ctrl_c_ends_everything_and_keeps_what_is_good(project):
    project.write("page.md", PAGE + "\n```python\nimport time\ntime.sleep(50)\n```\n")
    process = subprocess.Popen([sys.executable, "-m", "pytest", "docs", "-q"], cwd=project.root, stdout=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 60
    while len(list((project.root / ".cache").rglob("*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    server = next(child for child in psutil.Process(process.pid).children() if "host.py" in " ".join(child.cmdline()))
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in output and not server.is_running()
    assert "2 passed" in (kept := project.pytest("-k", "page-1 or more-1")).stdout and "running" not in kept.stdout
