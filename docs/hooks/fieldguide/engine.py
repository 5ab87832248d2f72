"""Runs programs side by side in children of one fork server, each inside limits, and gives back what they did.

An outcome is a dict: {"stdout", "stderr", "exception": {"type", "text", "traceback"} or None, "exit": int, signal name or None,
"stopped": why the engine ended it or None, "seconds"}.
"""

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

HOST = Path(__file__).with_name("host.py")
SECONDS, RESIDENT, OUTPUT = 60, 4 * 2**30, 2**20  # limits of one program: wall seconds, bytes of memory, bytes of output


class EngineError(Exception):
    """The engine itself cannot work: the message names the cause and the remedy."""


class Engine:
    """Runs programs under one interpreter. Starts the fork server when the first program needs it.

    python: path of the interpreter that has TensorFlow; root: the project; seconds, resident, output: limits of one program.
    """

    def __init__(self, root, python=sys.executable, seconds=SECONDS, resident=RESIDENT, output=OUTPUT):
        self.root, self.python = Path(root).resolve(), str(python)
        self.seconds, self.resident, self.output = seconds, resident, output
        self.pool = ThreadPoolExecutor(max_workers=os.cpu_count())
        self.jobs = Path(tempfile.mkdtemp(prefix="fieldguide-"))
        self.server, self.answers, self.lock = None, {}, threading.Lock()

    def submit(self, program):
        """Returns a Future of the program's outcome."""
        return self.pool.submit(self.run, program)

    def run(self, program):
        """Runs one program to its end and returns its outcome."""
        folder = Path(tempfile.mkdtemp(dir=self.jobs))
        for name in ("work", "tmp"):
            (folder / name).mkdir()
        job = {"filename": program.page, "blocks": [{"line": block.line + 1, "code": block.code} for block in program.blocks]}
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        try:
            if program.command is not None:
                os.symlink(self.root / "snippets", folder / "work" / "snippets")
                return self._run_process([self.python, *program.command], folder, folder / "work")
            if program.attributes.get(".fresh"):
                return self._run_process([self.python, str(HOST), "run", str(folder)], folder, folder)
            return self._run_forked(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self):
        """Ends the server and everything still running. Safe to call twice."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        if self.server:
            _kill(self.server.pid)
            self.server.wait()
        shutil.rmtree(self.jobs, ignore_errors=True)

    def _run_process(self, command, folder, cwd):
        with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
            process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
        stopped = self._watch(process.pid, folder, lambda seconds: process.poll() is not None or time.sleep(seconds))
        code = process.wait()
        return _outcome(folder, stopped, code if code >= 0 else signal.Signals(-code).name)

    def _run_forked(self, folder):
        answers = self.answers[str(folder)] = queue.Queue()
        with self.lock:
            self._start_server()
            self._send(f"{folder}\n")
        pid = self._next(answers, None)["pid"]  # the limits count from here: the first child waits for the import
        ended = []

        def wait(seconds):
            try:
                ended.append(self._next(answers, seconds))
            except queue.Empty:
                return False
            return True

        stopped = self._watch(pid, folder, wait)
        status = ended[0]["status"]
        return _outcome(folder, stopped, signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))

    def _watch(self, pid, folder, wait):
        """Waits for the process, killing it at its limits; returns why it was stopped, or None. `wait(seconds)` says whether it ended."""
        started, stopped = time.monotonic(), None
        while not wait(0.02):
            if stopped:
                continue
            if time.monotonic() - started > self.seconds:
                stopped = f"stopped after {self.seconds} s: it did not end"
            elif _resident(pid) > self.resident:
                stopped = f"stopped at {self.resident / 2**30:.1f} GiB of memory, the limit of one program"
            elif sum((folder / name).stat().st_size for name in ("stdout", "stderr") if (folder / name).exists()) > self.output:
                stopped = f"stopped at {self.output // 2**10} KiB of output, the limit of one program"
            if stopped:
                _kill(pid)
        _signal(os.killpg, pid)  # what it forked and left behind in its session
        return stopped

    def _start_server(self):
        if self.server:
            return
        self.server_log = open(self.jobs / "server.log", "wb")
        self.server = subprocess.Popen(
            [self.python, str(HOST), "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.server_log, cwd=self.jobs, start_new_session=True
        )
        threading.Thread(target=self._dispatch, daemon=True).start()

    def _send(self, line):
        try:
            self.server.stdin.write(line.encode())
            self.server.stdin.flush()
        except OSError:
            pass  # the server is gone; _dispatch tells everyone who waits

    def _dispatch(self):
        for line in self.server.stdout:
            message = json.loads(line)
            if "job" in message:
                self.answers[message["job"]].put(message)
        for answers in list(self.answers.values()):
            answers.put(None)

    def _next(self, answers, seconds):
        message = answers.get(timeout=seconds)
        if message is None:
            log = (self.jobs / "server.log").read_text(errors="replace").strip().splitlines() if self.jobs.exists() else []
            raise EngineError(f"{self.python} cannot import TensorFlow, or its fork server died: {log[-1] if log else 'it said nothing'}")
        return message


def _outcome(folder, stopped, ended):
    """Reads what the child left in its folder; `ended` is its exit status or signal name."""
    report = {"exception": None, "exit": ended, "stdout_from": 0, "stderr_from": 0, "seconds": None}
    if (folder / "outcome.json").exists():
        report = json.loads((folder / "outcome.json").read_text(encoding="utf-8"))
    texts = {}
    for name in ("stdout", "stderr"):
        raw = (folder / name).read_bytes() if (folder / name).exists() else b""
        texts[name] = raw[report.pop(f"{name}_from"):][:OUTPUT].decode("utf-8", "replace").replace(str(folder), "…")
    return {**texts, **report, "stopped": stopped}


def _resident(pid):
    try:
        return psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return 0


def _kill(pid):
    """Ends a process and all that descends from it, in other sessions too."""
    try:
        descendants = [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        descendants = []
    for each in (pid, *descendants):
        _signal(os.kill, each)


def _signal(send, pid):
    try:
        send(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
