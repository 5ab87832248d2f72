"""What a conversion between tensor and NumPy array costs, by size.

    python conversion_cost.py           about a minute on two cores
    python conversion_cost.py --quick   a first look

Needs TensorFlow, NumPy and paired_timing.py beside this file.
"""

import numpy as np
import paired_timing

SIZES = ((1, "1 number"), (1_000, "1,000 numbers"), (1_000_000, "a million numbers"))
LIST_LIMIT = 1_000  # a Python list of a million numbers takes too long to convert


def repeat(convert, source):
    def run(calls):
        for _ in range(calls):
            result = convert(source)
        return float(result[0])

    return run


def build(options):
    import tensorflow as tf

    return [group(tf, *size) for size in SIZES], {"dtype": "float32"}, {}


def group(tf, size, name):
    array = np.ones([size], np.float32)
    tensor = tf.constant(array)
    ways = [
        ("array copy", np.copy, array, "array.copy(), for comparison"),
        ("numpy()", lambda t: t.numpy(), tensor, "tensor.numpy()"),
        ("np.asarray", np.asarray, tensor, "np.asarray(tensor)"),
        ("tf.constant", tf.constant, array, "tf.constant(array)"),
        ("convert_to_tensor", tf.convert_to_tensor, array, "tf.convert_to_tensor(array)"),
        ("unmixed", lambda t: tensor + t, tensor, "tensor + tensor"),
        ("mixed", lambda a: tensor + a, array, "tensor + array"),
    ]
    if size <= LIST_LIMIT:
        ways.append(("from a list", tf.constant, array.tolist(), "tf.constant(list)"))
        ways.append(("to a list", lambda t: t.numpy().tolist(), tensor, "tensor.numpy().tolist()"))
    cells = [paired_timing.Cell(key, repeat(way, source), label) for key, way, source, label in ways]
    return paired_timing.Group(name, cells, unit="call", facts={"numbers": size})


if __name__ == "__main__":
    paired_timing.main(__file__, build)
