"""Will a graph make my model faster? Measures one training step of a Keras model, eager and in a tf.function.

    python will_graph_help.py                                   a small model and a large one
    python will_graph_help.py my_module:make_model --batch 32   yours: a model, or a function that makes one
    python will_graph_help.py my_module:model --shape 224,224,3

From Python: `from will_graph_help import will_graph_help; will_graph_help(model, batch=32)`. The weights are
put back afterwards. Needs TensorFlow and paired_timing.py beside this file.
"""

import argparse
import importlib
import os
import sys

import paired_timing

HIDDEN, WORTH = 1.1, 1.5
ROUNDS, SAMPLE_SECONDS = 9, 0.1


def will_graph_help(model, batch=32, inputs=None, shape=None):
    """Measure a step, print what was found, and return the estimates as a dict."""
    import tensorflow as tf

    inputs = example(tf, model, batch, shape) if inputs is None else inputs
    model(inputs, training=False)  # builds the model if it has no weights yet
    weights = model.get_weights()
    try:
        steps = {name: train_step(tf, model, inputs) for name in ("graph", "eager")}
        cells = [
            paired_timing.Cell("graph", repeat(tf.function(steps["graph"])), traces=lambda: steps["graph"].runs),
            paired_timing.Cell("eager", repeat(steps["eager"]), traces=lambda: steps["eager"].runs, each_unit=True),
        ]
        progress = paired_timing.Progress("will_graph_help")
        group = paired_timing.Group(f"{model.name}, batch {batch}", cells)
        groups = paired_timing.measure([group], ROUNDS, SAMPLE_SECONDS, say=progress)
        progress.end()
    finally:
        model.set_weights(weights)
    graph, eager = paired_timing.estimates({"groups": groups})[0]["cells"][:2]
    print(f"{model.name}: {model.count_params():,} parameters, batch {batch}\n" + report(graph, eager))
    return {"graph": graph, "eager": eager}


def report(graph, eager):
    """What the two measured steps mean, in words."""
    show, ratio = paired_timing.duration, eager["ratio"]
    python = eager["seconds"] - graph["seconds"]
    lines = [
        f"  a training step in a graph  {show(graph['seconds']):>9}   (its first call {show(graph['first_call'])})",
        f"  the same step, eager        {show(eager['seconds']):>9}",
        f"  eager takes {ratio:.2f} times as long, between {eager['low']:.2f} and {eager['high']:.2f}",
    ]
    if eager["word"] == "unstable":
        return "\n".join(lines + ["  The machine was too unsteady to say more. Close what else is running and try again."])
    if eager["word"] != "slower":
        return "\n".join(lines + ["  Bound by arithmetic: a graph gains nothing you can measure. Stay eager if that is handier."])
    calls = paired_timing.break_even(graph, eager)
    cost = f"Eager mode costs {show(python)} a step."
    if ratio < HIDDEN:
        lines.append(f"  Bound by arithmetic: a graph gains little. {cost}")
    elif ratio < WORTH:
        lines.append(f"  Between the two: a graph gains something. {cost}")
    else:
        lines.append(f"  Bound by Python: a graph helps. {cost}")
    lines.append(f"  The graph has paid for its first call after {calls:,} steps.")
    if ratio >= HIDDEN:
        lines.append(f"  That would be a tenth of a step that takes {show(python / (HIDDEN - 1))}.")
    return "\n".join(lines)


def train_step(tf, model, inputs):
    optimizer = tf.keras.optimizers.SGD(0.0)
    if hasattr(optimizer, "build"):
        optimizer.build(model.trainable_variables)

    def step():
        with tf.GradientTape() as tape:
            outputs = tf.nest.flatten(model(inputs, training=True))
            loss = tf.add_n([tf.reduce_mean(tf.square(tf.cast(output, tf.float32))) for output in outputs])
        variables = model.trainable_variables
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients([pair for pair in zip(gradients, variables) if pair[0] is not None])
        return loss

    return paired_timing.Counted(step)


def repeat(step):
    def run(steps):
        for _ in range(steps):
            loss = step()
        return float(loss)

    return run


def example(tf, model, batch, shape):
    """Inputs of the model's own shapes: random numbers, or zeros where it wants integers."""
    if shape is not None:
        return tf.random.normal([batch, *shape])
    inputs = getattr(model, "inputs", None)
    if not inputs:
        raise SystemExit(f"{model.name} does not know its input's shape. Give it: --shape 224,224,3")
    made = []
    for each in inputs:
        if None in each.shape[1:]:
            raise SystemExit(f"{model.name} takes inputs of shape {tuple(each.shape)}. Choose one: --shape 224,224,3")
        dtype = tf.as_dtype(each.dtype)
        make = tf.random.normal if dtype.is_floating else tf.zeros
        made.append(make([batch, *each.shape[1:]], dtype=dtype))
    return made[0] if len(made) == 1 else made


def demo_models(tf):
    layers = tf.keras.layers
    small = [layers.Dense(32, activation="relu") for _ in range(6)] + [layers.Dense(1)]
    large = [layers.Dense(2048, activation="relu") for _ in range(3)] + [layers.Dense(1)]
    for name, stack, features, batch in (("small", small, 16, 32), ("large", large, 1024, 512)):
        yield tf.keras.Sequential([tf.keras.Input((features,))] + stack, name=name), batch


def load(name):
    module, _, attribute = name.partition(":")
    if not attribute:
        raise SystemExit(f"Write module:name, for example my_module:make_model, and not {name!r}.")
    sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise SystemExit(f"No {attribute} in {module}: {error}")
    return found if hasattr(found, "trainable_variables") else found()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", help="module:name of a Keras model, or of a function that makes one")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--shape", help="the shape of one input without the batch, for example 224,224,3")
    options = parser.parse_args()
    with paired_timing.native_stderr_kept():
        import tensorflow as tf

        tf.constant(1.0)
    shape = [int(size) for size in options.shape.split(",")] if options.shape else None
    try:
        if options.model:
            will_graph_help(load(options.model), options.batch, shape=shape)
        else:
            for model, batch in demo_models(tf):
                will_graph_help(model, batch)
    except paired_timing.Void as reason:
        raise SystemExit(f"Nothing can be said: {reason}")


if __name__ == "__main__":
    main()
