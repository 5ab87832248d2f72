"""snippets/mode_probe.py, alone in a folder, in one process that goes through every mode."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SNIPPET = ROOT / "snippets" / "mode_probe.py"
PAGE = ROOT / "docs" / "guide" / "modes.md"

VISITS = '''
import json

import numpy as np
import tensorflow as tf
from mode_probe import mode, places

said = {}
x = tf.constant(1)
variable, outer = tf.Variable(1), tf.constant(2)
layer = tf.keras.layers.Dense(1)
layer.build((None, 1))


def visit(place, *value):
    said[place] = str(mode(*value))
    return tf.constant(1)


visit("top")
visit("top, tensor", x)
visit("top, variable", variable)
visit("top, float", 1.0)
visit("top, array", np.ones(1))
visit("top, None", None)
visit("top, KerasTensor", tf.keras.Input((2,)))
visit("top, sparse", tf.sparse.from_dense([1, 0]))


@tf.function
def step(x):
    visit("function")
    visit("function, argument", x)
    visit("function, outer tensor", outer)
    visit("function, variable", variable)
    visit("function, weight", layer.kernel)
    if x > 0:
        visit("branch")
    for _ in tf.range(2):
        visit("loop")
    with tf.init_scope():
        visit("init_scope")
        visit("init_scope, argument", x)
    tf.numpy_function(lambda a: visit("numpy_function", a).numpy(), [x], tf.int32)
    return tf.py_function(lambda a: visit("py_function", a), [x], tf.int32)


step(x)
before = tf.function(lambda: tf.constant(1))
after = tf.function(lambda: (mode(), tf.constant(1))[1])
counts = [len(f.get_concrete_function().graph.get_operations()) for f in (before, after)]
tf.py_function(lambda a: visit("eager py_function", a), [x], tf.int32)
tf.numpy_function(lambda a: visit("eager numpy_function").numpy(), [x], tf.int32)
list(tf.data.Dataset.range(1).map(lambda i: visit("map")))
tf.config.run_functions_eagerly(True)
tf.function(lambda x: visit("function, eagerly"))(x)
tf.config.run_functions_eagerly(False)
with tf.Graph().as_default():
    visit("local graph")
    visit("local graph, outer tensor", x)
table = places()
visit("TF1 mode")
outputs = [
    tf.py_function(lambda a: visit("py_function in TF1 mode", a), [tf.constant(1)], tf.int32),
    tf.numpy_function(lambda a: (visit("numpy_function in TF1 mode"), a)[1], [tf.constant(1)], tf.int32),
]
with tf.compat.v1.Session() as session:
    session.run(outputs)
print(json.dumps({"said": said, "table": table, "counts": counts}))
'''

EXPECTED = {
    "top": "eager: .numpy() works",
    "top, tensor": "eager, on this EagerTensor: .numpy() works",
    "top, variable": "eager, on this ResourceVariable: .numpy() works",
    "top, float": "eager, on this float: no .numpy(); it is no tensor",
    "top, array": "eager, on this ndarray: no .numpy(); it is no tensor",
    "top, None": "eager, on this NoneType: no .numpy(); it is no tensor",
    "top, KerasTensor": "eager, on this KerasTensor: no .numpy(); it belongs to a graph",
    "top, sparse": "eager, on this SparseTensor: no .numpy(); this type has none",
    "function": "graph, tracing step: no .numpy(); tf.print shows values",
    "function, argument": "graph, tracing step, on this SymbolicTensor: no .numpy(); tf.print shows values",
    "function, outer tensor": "graph, tracing step, on this EagerTensor: .numpy() works",
    "function, variable": "graph, tracing step, on this ResourceVariable: no .numpy(); tf.print shows values",
    "function, weight": "graph, tracing step, on this Variable: no .numpy(); tf.print shows values",
    "branch": "graph, tracing step: no .numpy(); tf.print shows values",
    "loop": "graph, tracing step: no .numpy(); tf.print shows values",
    "init_scope": "eager, under tf.init_scope: .numpy() works; only for tensors made here",
    "init_scope, argument": "eager, under tf.init_scope, on this SymbolicTensor: no .numpy(); it belongs to a graph",
    "py_function": "eager, inside tf.py_function, on this EagerTensor: .numpy() works",
    "eager py_function": "eager, inside tf.py_function, on this EagerTensor: .numpy() works",
    "eager numpy_function": "eager, inside tf.numpy_function: .numpy() works",
    "map": "graph, tf.data traces Dataset_map_lambda: no .numpy(); tf.py_function runs Python on values",
    "function, eagerly": "eager, run_functions_eagerly is on: .numpy() works",
    "local graph": "local graph, inside tf.Graph().as_default(): no .numpy(); run it with tf.compat.v1.Session",
    "local graph, outer tensor": "local graph, inside tf.Graph().as_default(), on this EagerTensor: .numpy() works",
    "TF1 mode": "TF1 mode, eager execution is off in this process: no .numpy(); "
    "find the call of disable_eager_execution or disable_v2_behavior",
    "py_function in TF1 mode": "eager, inside tf.py_function, on this EagerTensor: .numpy() works",
    "numpy_function in TF1 mode": "TF1 mode, inside tf.numpy_function: no .numpy(); its arguments are NumPy arrays",
}

TABLE = """
top level                                  | eager
@tf.function                               | traced
Dataset.map                                | traced
layer's call in fit                        | traced
loss in fit                                | traced
metric in fit                              | traced
callback in fit                            | eager
layer's call in fit, run_eagerly=True      | eager
loss in fit, run_eagerly=True              | eager
metric in fit, run_eagerly=True            | eager
callback in fit, run_eagerly=True          | eager
py_function in a graph                     | eager
@tf.function, run_functions_eagerly(True)  | eager
Dataset.map, run_functions_eagerly(True)   | traced
Dataset.map, enable_debug_mode()           | eager
with tf.Graph().as_default()               | graph
after disable_v2_behavior()                | graph
"""
ANSWERS = {"eager": [True, False, True], "traced": [False, True, False], "graph": [False, False, False]}


@pytest.fixture(scope="module")
def visited(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probe")
    shutil.copy(SNIPPET, folder)
    (folder / "visits.py").write_text(VISITS)
    run = subprocess.run([sys.executable, "visits.py"], cwd=folder, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("place", EXPECTED)
def test_says_where_it_is(visited, place):
    assert visited["said"][place] == EXPECTED[place]


def test_table_of_places(visited):
    rows = [row.rsplit("|", 1) for row in TABLE.strip().splitlines()]
    assert visited["table"] == [[place.strip(), *ANSWERS[kind.strip()]] for place, kind in rows]


def test_adds_nothing_to_the_graph(visited):
    without, with_call = visited["counts"]
    assert without == with_call


def test_page_quotes_what_it_says():
    quoted = re.findall(r"`((?:eager|graph|local graph|TF1 mode)[^`]*\.numpy\(\)[^`]*)`", PAGE.read_text())
    assert len(quoted) == 3
    assert set(quoted) <= set(EXPECTED.values())
