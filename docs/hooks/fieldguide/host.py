"""Runs one program. This file alone is executed by the interpreter under test, so it needs only the standard library of Python 3.9.

    python host.py serve           imports TensorFlow once, then forks a child for every job folder named on stdin
    python host.py run JOB_FOLDER  runs one job in this new interpreter (blocks with .fresh)

A job folder holds job.json (what to run), work/ and tmp/ (the child's folders) and receives stdout, stderr and outcome.json:
{"exception": {"type", "text", "traceback"} or null, "exit": int or null, "stdout_from": int, "stderr_from": int, "seconds": float};
the two offsets say where the last block's own output begins. It is written before each block with "ended": false, so that a child that
dies leaves its offsets; how it died, its wait status tells.
"""

import __future__

import atexit
import gc
import inspect  # imported here so that a program cannot be what imports it first
import json
import linecache
import os
import select
import signal
import sys
import tempfile
import threading
import time
import traceback
import types

# A program may replace these where it finds them
clock, write_file, rename, exit_now, own_pid, to_json = time.monotonic, open, os.replace, os._exit, os.getpid, json.dumps
FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


def run(folder):
    """Runs the job in this process, which must be one of its own, and ends it."""
    try:
        with open(os.path.join(folder, "job.json"), encoding="utf-8") as file:
            _run(folder, json.load(file), own_pid())
    except BaseException as error:
        print(f"the program broke what its end needs: {error!r}", file=sys.__stderr__)
    finally:
        exit_now(70)  # whatever happens, not back into the server's loop


def _run(folder, job, pid):
    _own_everything(folder)
    outcome = {"exception": None, "exit": None, "stdout_from": 0, "stderr_from": 0, "seconds": None, "ended": False}
    started = clock()
    try:
        _execute(folder, job, outcome)
    except SystemExit as stop:
        outcome["exit"] = int(stop.code) & 0xFF if isinstance(stop.code, int) else int(stop.code is not None)
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
    except BaseException as error:
        outcome["exception"] = _describe(error, job["filename"])
    outcome["seconds"] = clock() - started
    try:
        threading._shutdown()  # os._exit would lose what other threads and exit functions print
        atexit._run_exitfuncs()
    except BaseException as error:
        outcome["exception"] = outcome["exception"] or _describe(error, job["filename"])
    _flush()
    if own_pid() == pid:  # and no child that the program forked, which comes here too
        _write(folder, {**outcome, "ended": True})
        exit_now(0)
    exit_now(outcome["exit"] or int(outcome["exception"] is not None))


def _write(folder, outcome):
    partial = os.path.join(folder, "outcome.partial")
    with write_file(partial, "w", encoding="utf-8") as file:
        file.write(to_json(outcome))
    rename(partial, os.path.join(folder, "outcome.json"))


def _own_everything(folder):
    """Gives this process a session, a working folder, temporary files, standard streams and random state of its own."""
    try:
        os.setsid()
    except PermissionError:
        pass  # started as a session leader
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # programs that abort on purpose leave no core files
    except (ImportError, ValueError):
        pass
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which the server ignores
    os.chdir(os.path.join(folder, "work"))
    os.environ["TMPDIR"] = os.path.join(folder, "tmp")
    tempfile.tempdir = None  # forget the parent's
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, descriptor)
        os.close(file)
        # line-buffered, so that prints, tf.print and subprocesses come in true order
        setattr(sys, name, open(descriptor, "w", buffering=1, encoding="utf-8", closefd=False))
        setattr(sys, f"__{name}__", getattr(sys, name))
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.argv, sys.path[0] = ["program.py"], os.path.join(folder, "work")
    atexit._clear()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # forked children would all draw the same numbers


def _execute(folder, job, outcome):
    """Runs the blocks of the chain one after another in a new __main__, each at its true line of the page."""
    padded = [""] * (job["blocks"][-1]["line"] + job["blocks"][-1]["code"].count("\n") + 1)
    for block in job["blocks"]:
        for offset, line in enumerate(block["code"].split("\n")[:-1]):
            padded[block["line"] - 1 + offset] = line
    source = "\n".join(padded)
    module = types.ModuleType("__main__")
    module.__file__ = job["filename"]
    module.__loader__ = types.SimpleNamespace(get_source=lambda name: source)
    sys.modules["__main__"] = module
    linecache.lazycache(job["filename"], module.__dict__)  # AutoGraph, inspect and tracebacks read the program here
    whole = compile(source, job["filename"], "exec", dont_inherit=True)  # as a file, it must be Python and has one set of __future__s
    for block in job["blocks"]:
        for name in ("stdout", "stderr"):
            outcome[f"{name}_from"] = os.stat(os.path.join(folder, name)).st_size
        _write(folder, outcome)
        code = compile("\n" * (block["line"] - 1) + block["code"], job["filename"], "exec", whole.co_flags & FUTURE, dont_inherit=True)
        exec(code, module.__dict__)
        _flush()


def _flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass  # the program closed or replaced it


def _describe(error, filename):
    frames = error.__traceback__
    while frames and frames.tb_frame.f_code.co_filename != filename:
        frames = frames.tb_next  # a reader's traceback begins in the program
    try:
        text = str(error)
    except BaseException as failure:
        text = f"(str() of the exception raised {type(failure).__name__})"
    return {"type": type(error).__name__, "text": text, "traceback": "".join(traceback.format_exception(type(error), error, frames))}


def _adopt_orphans():
    """On Linux: a grandchild that leaves its session becomes a child of this process, and ends with it."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    except (ImportError, OSError, AttributeError):
        pass


def serve():
    """Imports TensorFlow, says so on stdout, then forks a child for each line on stdin and reports its pid and wait status.

    Nothing here may run an operation: after one, tf.function and fit hang in forked children.
    """
    _adopt_orphans()
    answers, requests = os.dup(1), os.dup(0)
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    import tensorflow as tf
    import numpy.random  # NumPy 2 imports it at first use, 10 ms in every child

    tf.keras.layers, tf.compat.v1, tf.data  # lazy modules: imported once here, not in every child

    # Under `python -m` or a script, multiprocessing in a child would import this file again as __mp_main__
    sys.modules["__main__"].__spec__ = None
    del sys.modules["__main__"].__file__

    def answer(**message):
        os.write(answers, (json.dumps(message) + "\n").encode())

    gc.freeze()  # else the first full collection in a child goes through, and so copies, all that was imported: 0.2 s
    answer(ready=tf.__version__)
    children, pending, open_requests = {}, b"", True
    try:
        while open_requests:
            if select.select([requests], [], [], 0.005 if children else None)[0]:
                chunk = os.read(requests, 1 << 16)
                open_requests = bool(chunk)
                *lines, pending = (pending + chunk).split(b"\n")
                for folder in map(bytes.decode, lines):
                    pid = os.fork()
                    if not pid:
                        os.close(answers)
                        os.close(requests)
                        run(folder)
                    children[pid] = folder
                    answer(job=folder, pid=pid)
            while children:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                if pid in children:
                    answer(job=children.pop(pid), status=status)
    finally:
        for pid in children:  # the client is gone without a word
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.path[0] = os.devnull  # this folder must not be where TensorFlow or a program looks for modules
    if sys.argv[1] == "serve":
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the client's to handle; it closes stdin
        serve()
    else:
        run(sys.argv[2])
