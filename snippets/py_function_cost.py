"""What tf.py_function and tf.numpy_function cost per call: in a graph, and in Dataset.map.

    python py_function_cost.py           about a minute on two cores
    python py_function_cost.py --quick   a first look

The work is one addition, so what is timed is the way into Python and back. Needs TensorFlow and
paired_timing.py beside this file.
"""

import itertools

import paired_timing

LOOP = 100  # calls in one run of the graph, elements in one batch, so that a run's own cost does not count
SIZES = ((1, "1 number"), (1_000_000, "a million numbers"))


def ways(tf):
    def add(x):
        return x + 1

    def through_numpy(x):
        y = tf.numpy_function(add, [x], tf.float32)
        return tf.ensure_shape(y, x.shape)

    def through_python(x):
        y = tf.py_function(add, [x], tf.float32)
        return tf.ensure_shape(y, x.shape)

    return (
        ("graph", add, "TensorFlow's own x + 1"),
        ("numpy_function", through_numpy, "tf.numpy_function"),
        ("py_function", through_python, "tf.py_function"),
    )


def in_a_graph(tf, way, size, loop):
    x = tf.ones([size])

    @tf.function
    def many():
        y = x
        for _ in tf.range(loop):
            y = way(y)
        return y[0]

    def run(calls):
        for _ in range(calls // loop):
            result = many()
        return float(result)

    return run


def in_a_dataset(tf, way):
    batches = iter(tf.data.Dataset.from_tensors(tf.ones([1])).repeat().map(way).batch(LOOP))

    def run(elements):
        for batch in itertools.islice(batches, elements // LOOP):
            pass
        return float(batch[0, 0])

    return run


def build(options):
    import tensorflow as tf

    checks = {}

    def in_a_function(size, name):
        loop = LOOP if size == 1 else LOOP // 10
        runs = {key: in_a_graph(tf, way, size, loop) for key, way, label in ways(tf)}

        def check():
            checks[f"sum, {name}"] = paired_timing.agree("The sum", {key: run(loop) for key, run in runs.items()}, 0.0)

        cells = [paired_timing.Cell(key, runs[key], label, multiple=loop) for key, way, label in ways(tf)]
        return paired_timing.Group(f"in a tf.function, {name}", cells, unit="call", facts={"numbers": size}, check=check)

    groups = [in_a_function(*size) for size in SIZES]
    cells = [paired_timing.Cell(key, in_a_dataset(tf, way), label, multiple=LOOP) for key, way, label in ways(tf)]
    groups.append(paired_timing.Group("in Dataset.map, 1 number", cells, unit="element", facts={"numbers": 1}))
    return groups, {"calls in one graph": LOOP}, checks


if __name__ == "__main__":
    paired_timing.main(__file__, build)
