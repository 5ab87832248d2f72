"""Which mode does this line of my code run in, and does .numpy() work here?

Put one call anywhere: in a layer, a loss, a callback, a Dataset.map function, a test.

    from mode_probe import mode

    print(mode())      # the mode of this line
    print(mode(x))     # the same, and whether x.numpy() works

Where TensorFlow traces a function, Python runs only during the trace, so the line is printed
once for each trace. mode() adds no operation to the graph it finds.

As a program, it goes to each place and prints what TensorFlow answers there:

    python mode_probe.py

Needs TensorFlow 2.6 or later, with Keras 2 or 3.
"""

import sys
import threading
from typing import NamedTuple

import tensorflow as tf


class Mode(NamedTuple):
    name: str  # "eager", "graph", "local graph" or "TF1 mode"
    where: str  # more about the place, may be empty
    numpy: bool  # whether .numpy() works: on a tensor made here, or on the value that was given
    advice: str  # what to do instead, may be empty

    def __str__(self):
        place = ", ".join(part for part in (self.name, self.where) if part)
        verdict = ".numpy() works" if self.numpy else "no .numpy()"
        return f"{place}: " + "; ".join(part for part in (verdict, self.advice) if part)


@tf.autograph.experimental.do_not_convert
def mode(*value):
    """The mode of the line that calls this; with a value, also whether value.numpy() works."""
    here = _mode_here()
    if not value:
        return here
    kind, works = type(value[0]), _has_numpy(value[0])
    if works:
        advice = ""
    elif not kind.__module__.startswith(("tensorflow", "keras", "tf_keras")):
        advice = "it is no tensor"
    elif kind.__name__ in ("Tensor", "SymbolicTensor", "KerasTensor"):
        advice = "it belongs to a graph" if here.numpy else here.advice
    else:
        advice = "this type has none" if here.numpy else here.advice
    where = ", ".join(part for part in (here.where, f"on this {kind.__name__}") if part)
    return Mode(here.name, where, works, advice)


def _mode_here():
    callback = _python_callback()
    if tf.executing_eagerly():
        if callback:
            return Mode("eager", f"inside {callback}", True, "")
        if tf.inside_function():
            return Mode("eager", "under tf.init_scope", True, "only for tensors made here")
        if tf.config.functions_run_eagerly():
            return Mode("eager", "run_functions_eagerly is on", True, "")
        return Mode("eager", "", True, "")
    if callback:  # tf.numpy_function once eager execution is off
        return Mode("TF1 mode", f"inside {callback}", False, "its arguments are NumPy arrays")
    if tf.inside_function():
        return _mode_in_trace(tf.compat.v1.get_default_graph())
    if _default_is_eager():
        advice = "run it with tf.compat.v1.Session"
        return Mode("local graph", "inside tf.Graph().as_default()", False, advice)
    advice = "find the call of disable_eager_execution or disable_v2_behavior"
    return Mode("TF1 mode", "eager execution is off in this process", False, advice)


def _mode_in_trace(graph):
    name = graph.name
    while type(graph).__name__ != "FuncGraph" and getattr(graph, "outer_graph", None) is not None:
        graph = graph.outer_graph  # a branch or the body of a loop: name the function around it
        name = getattr(graph, "name", name)
    if name.startswith("Dataset_"):
        return Mode("graph", f"tf.data traces {name}", False, "tf.py_function runs Python on values")
    if "scratch_graph" in name:
        return Mode("graph", "Keras tries the layer without data", False, "")
    return Mode("graph", f"tracing {name}", False, "tf.print shows values")


def _has_numpy(value):
    try:
        value.numpy()
    except Exception:  # each kind of tensor has its own way of refusing
        return False
    return True


def _default_is_eager():
    """Whether the process is eager, seen from inside a graph: a new thread starts in its default."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(tf.executing_eagerly()))
    thread.start()
    thread.join()
    return answers[0]


def _python_callback():
    """The name of the function through which a graph calls this Python code, or None."""
    frame, found = sys._getframe(1), None
    while frame is not None:
        if frame.f_code.co_filename.endswith("script_ops.py"):
            if type(frame.f_locals.get("self")).__name__ == "EagerFunc":
                return "tf.py_function"
            found = "tf.numpy_function"
        frame = frame.f_back
    return found


def places():
    """Go to each place, and yield (place, executing_eagerly(), inside_function(), .numpy() works)."""
    import numpy as np

    seen = {}

    def note(place, value):  # the last visit counts: Keras may first call a layer without data
        seen[place] = (tf.executing_eagerly(), tf.inside_function(), mode(value).numpy)
        return value

    one = tf.constant(1)
    note("top level", one)
    tf.function(lambda x: note("@tf.function", x))(one)
    tf.data.Dataset.range(1).map(lambda x: note("Dataset.map", x))

    def visit_model(suffix="", **compile_options):
        class Probe(tf.keras.layers.Layer):
            def call(self, x):
                return note("layer's call in fit" + suffix, x)

        class Report(tf.keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                note("callback in fit" + suffix, self.model.trainable_weights[0])

        def loss(y, predicted):
            return tf.reduce_mean(tf.square(y - note("loss in fit" + suffix, predicted)))

        def metric(y, predicted):
            return tf.reduce_mean(note("metric in fit" + suffix, predicted))

        x, y = np.ones((2, 1), "float32"), np.ones((2, 1), "float32")
        model = tf.keras.Sequential([tf.keras.Input((1,)), Probe(), tf.keras.layers.Dense(1)])
        model.compile("sgd", loss, metrics=[metric], **compile_options)
        model.fit(x, y, verbose=0, callbacks=[Report()])

    visit_model()
    visit_model(", run_eagerly=True", run_eagerly=True)

    @tf.function
    def call_python(x):
        return tf.py_function(lambda v: note("py_function in a graph", v), [x], tf.int32)

    call_python(one)
    tf.config.run_functions_eagerly(True)
    tf.function(lambda x: note("@tf.function, run_functions_eagerly(True)", x))(one)
    tf.data.Dataset.range(1).map(lambda x: note("Dataset.map, run_functions_eagerly(True)", x))
    tf.config.run_functions_eagerly(False)
    tf.data.experimental.enable_debug_mode()
    list(tf.data.Dataset.range(1).map(lambda x: note("Dataset.map, enable_debug_mode()", x)))
    with tf.Graph().as_default():
        note("with tf.Graph().as_default()", tf.constant(1))
    tf.compat.v1.disable_v2_behavior()
    note("after disable_v2_behavior()", tf.constant(1))
    return [(place, *answers) for place, answers in seen.items()]


def main():
    head = ("place", "executing_eagerly()", "inside_function()", ".numpy()")
    rows = [(p, str(e), str(i), "works" if n else "fails") for p, e, i, n in places()]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(4)]
    for row in [head, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


if __name__ == "__main__":
    main()
