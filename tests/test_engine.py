"""The engine runs hostile programs next to good ones: each is one outcome, and nothing leaks."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from conftest import ROOT, program

from fieldguide import programs
from fieldguide.compare import mismatch
from fieldguide.engine import Engine, EngineError

HOSTILE = {
    "loops for ever": ("while True: pass", "stopped after 5 s"),
    "sleeps in a thread": ("import threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()", "stopped after 5 s"),
    "os._exit": ("import os\nos._exit(0)", 'ended its process (0)'),
    "sys.exit": ("import sys\nsys.exit(0)", 'ended its process (0)'),
    "sys.exit with a text": ("import sys\nsys.exit('no')", 'ended its process (1)'),
    "aborts": ("import os\nos.abort()", "ended its process (SIGABRT)"),
    "segfaults": ("import ctypes\nctypes.string_at(0)", "ended its process (SIGSEGV)"),
    "kills its group": ("import os\nos.killpg(0, 9)", "ended its process (SIGKILL)"),
    "prints 100 MB": ("for _ in range(100): print('x' * 1_000_000)", "KiB of output"),
    "takes memory": ("blocks = []\nwhile True: blocks.append(bytearray(b'x') * 2**26)", "GiB of memory"),
    "raises": ("1 / 0", "raised ZeroDivisionError"),
    "interrupts itself": ("raise KeyboardInterrupt", "raised KeyboardInterrupt"),
    "an exception without a text": ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "raised E"),
    "is not Python": ("def", "raised SyntaxError"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_program_is_one_failure(engine, name):
    code, message = HOSTILE[name]
    block = program(code)
    assert message in mismatch(block, engine.run(block))
    after = program("print(1)", "1")
    assert mismatch(after, engine.run(after)) is None


HARMLESS = {
    "closes stdout": "import sys\nsys.stdout.close()",
    "changes directory": "import os\nos.chdir('/')",
    "empties its working folder": "import os, shutil\nopen('file', 'w').close()\nshutil.rmtree(os.getcwd())",
    "replaces the clock": "import os, time\ntime.time = time.monotonic = lambda: 0\nos._exit = os.replace = print",
    "forks": "import os, time\nif not os.fork(): time.sleep(99)",
    "reads stdin": "import sys\nassert sys.stdin.read() == ''",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_strange_program_that_ends_well_passes(engine, name):
    block = program(HARMLESS[name])
    started = time.monotonic()
    assert mismatch(block, engine.run(block)) is None
    assert time.monotonic() - started < 5


def test_what_a_program_forks_is_ended_with_it(engine):
    block = program("import os, time\nchild = os.fork()\nif not child: time.sleep(99)\nprint(child)", "")
    child = int(engine.run(block)["stdout"])
    deadline = time.monotonic() + 5
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_programs_do_not_see_each_other(engine):
    first = program("import tensorflow as tf\ntf.compat.v1.disable_v2_behavior()\nname = 1\nopen('file', 'w').close()")
    second = program("import os\nimport tensorflow as tf\nprint(tf.executing_eagerly(), 'name' in globals(), os.listdir())", "True False []")
    engine.run(first)
    assert mismatch(second, engine.run(second)) is None


def test_numpy_draws_differ_between_programs(engine):
    block = program("import numpy as np\nprint(np.random.rand())", "")
    assert engine.run(block)["stdout"] != engine.run(block)["stdout"]


def test_output_of_every_kind_comes_in_true_order(engine):
    block = program(
        "import atexit, os, subprocess, sys, threading\nimport tensorflow as tf\natexit.register(print, 'at exit')\nprint('print')\nos.write(1, b'os.write\\n')\n"
        "tf.print('tf.print', output_stream=sys.stdout)\nsubprocess.run(['echo', 'subprocess'])\nthreading.Thread(target=lambda: print('thread')).start()",
        "print\nos.write\ntf.print\nsubprocess\nthread\nat exit",
    )
    assert mismatch(block, engine.run(block)) is None


def test_autograph_inspect_and_tracebacks_see_the_page(engine):
    block = program(
        "import inspect\nimport tensorflow as tf\n\n@tf.function\ndef f(x):\n    if x > 0:\n        return x\n    return -x\n\nclass C:\n    a = 1\n\nprint(f(tf.constant(-2)).numpy())\n"
        "print(inspect.getsource(C).strip())\ntry:\n    1 / 0\nexcept ZeroDivisionError as error:\n    print(error.__traceback__.tb_frame.f_code.co_filename, error.__traceback__.tb_lineno)",
        "2\nclass C:\n    a = 1\ndocs/page.md 17",
    )
    assert mismatch(block, engine.run(block)) is None


def test_a_fresh_program_gets_a_new_interpreter(engine):
    code = "import sys\nprint('tensorflow' in sys.modules)"
    forked, fresh = program(code, "True"), program(code, "False", ".fresh")
    assert mismatch(forked, engine.run(forked)) is None
    assert mismatch(fresh, engine.run(fresh)) is None


def test_an_interpreter_without_tensorflow_is_one_clear_error(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    engine = Engine(ROOT, python=tmp_path / "bare" / "bin" / "python")
    with pytest.raises(EngineError, match="cannot import TensorFlow.*No module named 'tensorflow'"):
        engine.run(program("1"))
    engine.close()


def test_a_server_that_dies_fails_every_waiting_program():
    engine = Engine(ROOT)
    future = engine.submit(program("import time\ntime.sleep(99)"))
    deadline = time.monotonic() + 60
    while not (engine.server and psutil.Process(engine.server.pid).children()) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.kill(engine.server.pid, signal.SIGKILL)
    with pytest.raises(EngineError, match="fork server died"):
        future.result(timeout=10)
    engine.close()


SLY = {
    "a forked child that falls through": ("import os\nif os.fork():\n    os.wait()\n    os._exit(3)", "ended its process (3)"),
    "a faked outcome and an abort": ("import json, os\nopen('../outcome.json', 'w').write(json.dumps({'ended': True}))\nos.abort()", "SIGABRT"),
    "a garbage outcome": ("import os\nopen('../outcome.json', 'w').write('[')\nos._exit(0)", "ended its process (0)"),
    "more output than allowed, at once": ("print('x' * 100_000)", "KiB"),
    "output replaced by an endless file": ("import os\nos.remove('../stdout')\nos.symlink('/dev/zero', '../stdout')", None),
}


@pytest.mark.parametrize("name", SLY)
def test_a_program_that_lies_about_its_end_is_found_out(engine, name):
    code, message = SLY[name]
    block = program(code)
    wrong = mismatch(block, engine.run(block))
    assert wrong is None if message is None else message in wrong


def test_what_the_first_block_printed_is_not_the_last_ones_when_that_dies(engine):
    found, problems = programs.collect('```python\nprint("first")\n```\n\n```python {.continues exits="SIGABRT"}\nimport os\nos.abort()\n```\n\n```text\nfirst\n```\n', "docs/page.md")
    assert not problems and "prints something else" in mismatch(found[1], engine.run(found[1]))


def test_a_server_that_a_program_killed_is_started_again():
    engine = Engine(ROOT)
    engine.run(program("1"))
    os.kill(engine.server.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while engine.server and time.monotonic() < deadline:
        time.sleep(0.05)
    after = program("print(1)", "1")
    assert mismatch(after, engine.run(after)) is None
    engine.close()
