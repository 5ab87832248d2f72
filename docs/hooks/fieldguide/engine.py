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
        self.server, self.answers, self.lock, self.broken = None, {}, threading.Lock(), False
        self.processes = set()  # pids of programs in interpreters of their own

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
        for pid in [*self.processes]:
            _kill(pid)
        if server := self.server:
            _kill(server.pid)
            server.wait()
        shutil.rmtree(self.jobs, ignore_errors=True)

    def _run_process(self, command, folder, cwd):
        with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
            process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
        self.processes.add(process.pid)
        stopped = self._watch(process.pid, folder, lambda seconds: process.poll() is not None or time.sleep(seconds))
        code = process.wait()
        self.processes.discard(process.pid)
        return _outcome(folder, stopped, code if code >= 0 else signal.Signals(-code).name)

    def _run_forked(self, folder):
        with self.lock:
            self._start_server()
            answers = self.answers[str(folder)] = queue.Queue()
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
        try:
            while not wait(0.02):
                if stopped:
                    if time.monotonic() > gives_up and self.server:  # it was killed, but the server tells nobody: a program stopped it
                        _kill(self.server.pid)
                    continue
                if time.monotonic() - started > self.seconds:
                    stopped = f"stopped after {self.seconds} s: it did not end"
                elif _resident(pid) > self.resident:
                    stopped = f"stopped at {self.resident / 2**30:.1f} GiB of memory, the limit of one program"
                elif _written(folder) > self.output:
                    stopped = f"stopped at {self.output // 2**10} KiB of output, the limit of one program"
                if stopped:
                    _kill(pid)
                    gives_up = time.monotonic() + 10
        finally:
            _signal(os.killpg, pid)  # what it forked and left behind in its session
        if not stopped and _written(folder) > self.output:
            stopped = f"printed more than {self.output // 2**10} KiB, the limit of one program"
        return stopped

    def _start_server(self):
        """Starts the server if there is none, or none any more because a program killed it. Called with the lock held."""
        if self.broken:
            raise EngineError(self._why())
        if self.server:
            return
        with open(self.jobs / "server.log", "wb") as log:
            self.server = subprocess.Popen(
                [self.python, str(HOST), "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=self.jobs, start_new_session=True
            )
        threading.Thread(target=self._dispatch, args=[self.server], daemon=True).start()

    def _send(self, line):
        try:
            self.server.stdin.write(line.encode())
            self.server.stdin.flush()
        except OSError:
            pass  # the server is gone; _dispatch tells everyone who waits

    def _dispatch(self, server):
        ready = False
        for line in server.stdout:
            message = json.loads(line)
            ready = ready or "ready" in message
            if "job" in message:
                self.answers[message["job"]].put(message)
        with self.lock:
            self.server, self.broken = None, not ready  # one that could not import TensorFlow is not tried again
            for answers in self.answers.values():
                answers.put(None)
            self.answers.clear()

    def _next(self, answers, seconds):
        message = answers.get(timeout=seconds)
        if message is None:
            raise EngineError(self._why())
        return message

    def _why(self):
        log = (self.jobs / "server.log").read_text(errors="replace").strip().splitlines() if self.jobs.exists() else []
        return f"{self.python} cannot import TensorFlow, or its fork server died: {log[-1] if log else 'it said nothing'}"


def _outcome(folder, stopped, ended):
    """Reads what the child left in its folder; `ended` is its exit status or signal name."""
    report = {"exception": None, "exit": None, "stdout_from": 0, "stderr_from": 0, "seconds": None, "ended": False}
    try:
        report.update(json.loads((folder / "outcome.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        pass  # it was not written, or the program broke it
    if not report.pop("ended") or ended != 0:
        report["exit"] = ended
    texts = {}
    for name in ("stdout", "stderr"):
        start, raw = report.pop(f"{name}_from"), b""
        if (folder / name).is_file():
            with open(folder / name, "rb") as file:
                file.seek(start)
                raw = file.read(OUTPUT)
        texts[name] = raw.decode("utf-8", "replace").replace(str(folder), "…")
    return {**texts, **report, "stopped": stopped}


def _written(folder):
    """Bytes of output so far."""
    return sum((folder / name).lstat().st_size for name in ("stdout", "stderr") if (folder / name).exists())


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
