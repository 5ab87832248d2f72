"""snippets/what_moved.py: its judgement on made-up weights, and one process with real models."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

SNIPPET = Path(__file__).parent.parent / "snippets" / "what_moved.py"


@pytest.fixture(scope="module")
def what_moved():
    spec = importlib.util.spec_from_file_location("what_moved", SNIPPET)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Variable:
    """What a weight needs to be watched: a name, a value and a flag."""

    def __init__(self, name, value, trainable=True):
        self.name, self.value, self.trainable = name, np.array(value), trainable

    def numpy(self):
        return self.value.copy()


def model_of(*variables):
    return SimpleNamespace(weights=list(variables), trainable_weights=[v for v in variables if v.trainable])


def test_a_weight_that_moved_is_told_from_one_that_did_not(what_moved):
    a, b = Variable("a:0", [1.0, 2.0]), Variable("b:0", [1.0, 2.0])

    def train():
        a.value[1] += 1e-7

    assert [(w.name, w.moved) for w in what_moved.what_moved(model_of(a, b), train)] == [("a", True), ("b", False)]


def test_the_flag_is_the_one_before_training(what_moved):
    a = Variable("a", [1.0])
    model = model_of(a)
    result = what_moved.what_moved(model, model.trainable_weights.clear)
    assert [w.trainable for w in result] == [True]


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.0, 0.0])
def test_values_that_compare_oddly_have_not_moved(what_moved, value):
    a = Variable("a", [value])
    assert not what_moved.what_moved(model_of(a), lambda: None)[0].moved


def test_integers_booleans_and_empty_weights(what_moved):
    count, flag, empty = Variable("count", 3), Variable("flag", True), Variable("empty", np.zeros((0, 2)))

    def train():
        count.value = np.array(4)

    assert [w.moved for w in what_moved.what_moved([count, flag, empty], train)] == [True, False, False]


def test_a_weight_made_during_training_is_new_and_not_moved(what_moved):
    a, b = Variable("a", [1.0]), Variable("b", [1.0])
    model = model_of(a)
    result = what_moved.what_moved(model, lambda: model.weights.append(b))
    assert [(w.name, w.moved, w.new) for w in result] == [("a", False, False), ("b", False, True)]
    assert what_moved.report(result).splitlines()[2].split() == ["b", "no", "new"]


def test_a_model_without_weights_is_refused_before_training(what_moved):
    with pytest.raises(ValueError, match="call it on one batch first"):
        what_moved.what_moved(model_of(), lambda: pytest.fail("trained"))


def test_an_error_in_training_passes_through(what_moved):
    with pytest.raises(ZeroDivisionError):
        what_moved.what_moved(model_of(Variable("a", [1.0])), lambda: 1 / 0)


def test_the_report_names_both_surprises(what_moved):
    weights = [
        what_moved.Weight("kernel", trainable=True, moved=True, new=False),
        what_moved.Weight("dead", trainable=True, moved=False, new=False),
        what_moved.Weight("moving_mean", trainable=False, moved=True, new=False),
        what_moved.Weight("frozen", trainable=False, moved=False, new=False),
    ]
    assert what_moved.report(weights).splitlines() == [
        "weight       trainable  moved",
        "kernel       yes        yes",
        "dead         yes        no",
        "moving_mean  no         yes",
        "frozen       no         no",
        "moved, though not trainable: moving_mean",
        "trainable, but did not move: dead",
    ]


def test_the_report_without_a_surprise_is_the_table(what_moved):
    weights = [what_moved.Weight("kernel", trainable=True, moved=True, new=False)]
    assert len(what_moved.report(weights).splitlines()) == 2


REAL = '''
import json

import tensorflow as tf
from what_moved import demo, what_moved

layers = tf.keras.layers
said = {}


def told(name, model, train):
    said[name] = [[w.name.split("/")[-1], w.trainable, w.moved] for w in what_moved(model, train)]


layer = layers.BatchNormalization()
layer.build((None, 2))
told("layer", layer, lambda: layer(tf.random.uniform((8, 2)) + 5, training=True))

model = tf.keras.Sequential([layers.Input((2,)), layers.Dense(1, trainable=False), layers.Dense(1)])
told("model", model, lambda: [w.assign_add(tf.ones_like(w)) for w in model.trainable_weights])


class Module(tf.Module):
    def __init__(self):
        super().__init__()
        self.a = tf.Variable(1.0, name="a")
        self.b = tf.Variable(1.0, name="b", trainable=False)
        self.weights = tf.constant(1.0)


module = Module()
told("module", module, lambda: module.b.assign(2.0))
told("list", [module.a, module.b], lambda: module.a.assign(2.0))
told("half precision", [half := tf.Variable([1.0, 2.0], dtype=tf.bfloat16, name="half")], lambda: half.assign([1.0, 3.0]))

try:
    what_moved(tf.keras.Sequential([layers.Dense(1)]), lambda: None)
except ValueError as error:
    said["unbuilt"] = str(error)

print(json.dumps(said))
demo()
'''


def test_real_models_and_the_demonstration(tmp_path):
    shutil.copy(SNIPPET, tmp_path)
    (tmp_path / "real.py").write_text(REAL)
    done = subprocess.run([sys.executable, "real.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said, _, shown = done.stdout.partition("\n")
    said = json.loads(said)
    assert said["layer"] == [["gamma", True, False], ["beta", True, False], ["moving_mean", False, True], ["moving_variance", False, True]]
    assert said["model"] == [["kernel", False, False], ["bias", False, False], ["kernel", True, True], ["bias", True, True]]
    assert said["module"] == [["a", True, False], ["b", False, True]]
    assert said["list"] == [["a", True, True], ["b", False, False]]
    assert said["half precision"] == [["half", True, True]]
    assert "call it on one batch first" in said["unbuilt"]
    assert "moved, though not trainable: hidden/kernel, norm/moving_mean, norm/moving_variance" in shown
    assert shown.count("hidden/kernel         no         no\n") == 1
