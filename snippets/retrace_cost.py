"""What a call of a tf.function costs: traced before, or tracing anew, beside the same Python called eagerly.

    python retrace_cost.py           about a minute on two cores
    python retrace_cost.py --quick   a first look

A tf.function that is given a new Python number at every call traces at every call. Needs TensorFlow and
paired_timing.py beside this file.
"""

import itertools

import paired_timing

SIZES = ((1, "a function of 1 layer"), (20, "a function of 20 layers"))


def chain(tf, layers):
    """A function of a few operations a layer; `scale` is a Python number or a tensor."""
    weights = [tf.Variable(tf.eye(16) * 0.9) for _ in range(layers)]

    def function(x, scale):
        for weight in weights:
            x = tf.nn.relu(tf.matmul(x, weight)) * scale
        return tf.reduce_sum(x)

    return function


def repeat(call):
    def run(calls):
        for _ in range(calls):
            result = call()
        return float(result)

    return run


def build(options):
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")  # the warnings about retracing are the subject here
    return (group(tf, *size) for size in SIZES), {}, {}


def group(tf, layers, name):
    x, number, tensor = tf.ones([8, 16]), itertools.count(), tf.constant(1.0)
    eager, traced, retracing = (paired_timing.Counted(chain(tf, layers)) for _ in range(3))
    graph, compiled = tf.function(traced), tf.function(chain(tf, layers), jit_compile=True)
    parts = {"retracing": tf.function(retracing), "calls": 0}

    def retrace():
        """A fresh tf.function every so often, or the old traces would fill the memory."""
        if parts["calls"] % 100 == 0:
            parts["retracing"] = tf.function(retracing)
        parts["calls"] += 1
        return parts["retracing"](x, 1 / (2 + next(number)))

    cells = [
        paired_timing.Cell("graph", repeat(lambda: graph(x, tensor)), "@tf.function, traced before", traces=lambda: traced.runs),
        paired_timing.Cell("eager", repeat(lambda: eager(x, tensor)), "eager", traces=lambda: eager.runs, each_unit=True),
        paired_timing.Cell(
            "retrace", repeat(retrace), "@tf.function, a new Python number each call", traces=lambda: retracing.runs, each_unit=True
        ),
        paired_timing.Cell("jit", repeat(lambda: compiled(x, tensor)), "@tf.function(jit_compile=True), traced before"),
    ]
    return paired_timing.Group(name, cells, unit="call", facts={"layers": layers})


if __name__ == "__main__":
    paired_timing.main(__file__, build)
