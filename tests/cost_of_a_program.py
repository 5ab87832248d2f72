"""What verifying a program costs beside its own work. Not a test: timings belong to a machine.

    PYTHONPATH=docs/hooks:snippets .venv/bin/python tests/cost_of_a_program.py [COUNT]

Takes COUNT (100) small programs from the site's own pages, those that run to their end within SMALL seconds of own work, and prints the engine's
time relative to one import of TensorFlow plus half the programs' own seconds (two cores), and that of a new process for each relative to the engine's.
Own seconds are taken twice: all programs in one warm process, where TensorFlow does most things for the second time, and in a child each, where it
does everything for the first time. What lies between the two no engine can save, since no operation may run before the fork.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fieldguide import programs, records
from fieldguide.engine import Engine

ROOT = Path(__file__).parents[1]
SMALL = 0.2
NEW_PROCESSES = 6  # so many are really started, two at a time; the rest would take as long
WARM = """
import contextlib, io, json, runpy, sys, time
import tensorflow
seconds = {}
for path in json.loads(sys.argv[1]):
    started = time.perf_counter()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(path, run_name="__main__")
        seconds[path] = time.perf_counter() - started
    except Exception:
        pass  # it needs a process of its own, after what others did in this one
print(json.dumps(seconds))
"""


def timed(action):
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def main(count):
    environment = records.environment(ROOT, sys.executable)
    plain = [
        program for program in programs.read_site(ROOT)
        if program.block.language == "python" and not program.not_applicable(environment) and "disable_" not in program.text and "enable_" not in program.text
        and not {"raises", "exits", "illustration", ".fresh"} & set(program.attributes) and "run_functions_eagerly" not in program.text
    ][: 2 * count]
    folder = Path(tempfile.mkdtemp())
    paths = [folder / f"program_{number}.py" for number in range(len(plain))]
    for path, program in zip(paths, plain):
        path.write_text(program.text, encoding="utf-8")

    imports = timed(lambda: subprocess.run([sys.executable, "-c", "import tensorflow"], check=True, capture_output=True))
    warm = subprocess.run([sys.executable, "-c", WARM, json.dumps([str(path) for path in paths])], cwd=folder, check=True, capture_output=True, text=True)
    seconds = json.loads(warm.stdout.splitlines()[-1])
    small = [(path, program) for path, program in zip(paths, plain) if seconds.get(str(path), SMALL) < SMALL][:count]
    paths, plain = zip(*small)
    own = sum(seconds[str(path)] for path in paths)
    engine = Engine(ROOT)
    outcomes = []
    verified = timed(lambda: outcomes.extend(future.result() for future in [engine.submit(program) for program in plain]))
    engine.close()
    alone = sum(outcome["seconds"] for outcome in outcomes)

    def new_processes():
        for pair in zip(*[iter(paths[:NEW_PROCESSES])] * 2):
            for process in [subprocess.Popen([sys.executable, path], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for path in pair]:
                process.wait()

    new = timed(new_processes) / NEW_PROCESSES * len(plain)
    print(f"{len(plain)} programs; one import of TensorFlow {imports:.1f} s; the programs' own work {own:.1f} s in one warm process, {alone:.1f} s in a child each")
    for name, seconds in (("in one warm process", own), ("in a child each", alone)):
        print(f"verified in {verified:.1f} s: {verified / (imports + seconds / 2):.2f} times (one import + half the own work {name})")
    print(f"a new process for each would take {new:.0f} s: {new / verified:.1f} times the engine")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
