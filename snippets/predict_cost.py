"""Four ways to ask a Keras model for its predictions, one row at a time and many at once.

    python predict_cost.py           about a minute on two cores
    python predict_cost.py --quick   a first look

Needs TensorFlow, NumPy and paired_timing.py beside this file.
"""

import numpy as np
import paired_timing

FEATURES, TOLERANCE = 32, 1e-4


def make_model(tf):
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(64, activation="relu"), layers.Dense(4)])
    model.build((None, FEATURES))
    return model


def repeat(call, argument):
    def run(calls):
        for _ in range(calls):
            result = call(argument)
        return float(np.asarray(result)[0, 0])

    return run


def build(options):
    import tensorflow as tf

    tf.keras.utils.set_random_seed(1)
    model = make_model(tf)
    graph = tf.function(lambda x: model(x, training=False), reduce_retracing=True)
    checks = {}

    def group(name, rows):
        array = np.random.default_rng(1).normal(size=(rows, FEATURES)).astype("float32")
        tensor = tf.constant(array)
        ways = [
            ("call", lambda x: model(x, training=False).numpy(), tensor, "model(x, training=False)"),
            ("predict", lambda x: model.predict(x, verbose=0), array, "model.predict(x)"),
            ("predict_on_batch", model.predict_on_batch, array, "model.predict_on_batch(x)"),
            ("graph", lambda x: graph(x).numpy(), tensor, "the same in a tf.function"),
        ]
        runs = {key: repeat(way, source) for key, way, source, label in ways}

        def check():
            values = {key: run(1) for key, run in runs.items()}
            checks[f"first output, {name}"] = paired_timing.agree("The first output", values, TOLERANCE)

        cells = [paired_timing.Cell(key, runs[key], label) for key, way, source, label in ways]
        return paired_timing.Group(name, cells, unit="call", facts={"rows": rows}, check=check)

    groups = (group(name, rows) for name, rows in (("1 row", 1), ("32 rows", 32), ("10,000 rows", 10_000)))
    return groups, {"parameters": int(model.count_params()), "predict's own batch size": 32}, checks


if __name__ == "__main__":
    paired_timing.main(__file__, build)
