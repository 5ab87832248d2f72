"""Which weights did a training call really change?

    moved = what_moved(model, lambda: model.fit(x, y, verbose=0))
    print(report(moved))

Works with Keras 2 and 3, on models, layers, tf.Module and plain lists of variables; keeps a copy of every
weight while the call runs. Copy it into your code, or run this file for a demonstration:

    python what_moved.py
"""
from typing import NamedTuple


class Weight(NamedTuple):
    name: str
    trainable: bool  # listed as trainable when train() was called
    moved: bool      # its bytes differ afterwards
    new: bool        # train() created it


def what_moved(model, train):
    """Call train(), then return a Weight for every weight of model, in the model's order."""
    before = {id(w): w.numpy().tobytes() for w in _weights(model)}
    listed = {id(w) for w in _trainable(model)}
    if not before:
        raise ValueError("the model has no weights yet: call it on one batch first")
    train()
    return [
        Weight(
            name=getattr(w, "path", w.name).split(":")[0],
            trainable=id(w) in listed,
            moved=id(w) in before and before[id(w)] != w.numpy().tobytes(),
            new=id(w) not in before,
        )
        for w in _weights(model)
    ]


def report(weights):
    """What what_moved() returned as a table, with a line for each kind of surprise."""
    width = max([len("weight"), *(len(w.name) for w in weights)])
    lines = [f"{'weight':{width}}  trainable  moved"]
    for w in weights:
        moved = "new" if w.new else "yes" if w.moved else "no"
        lines.append(f"{w.name:{width}}  {'yes' if w.trainable else 'no':9}  {moved}")
    surprises = {
        "moved, though not trainable": [w.name for w in weights if w.moved and not w.trainable],
        "trainable, but did not move": [w.name for w in weights if w.trainable and not w.moved],
    }
    lines += [f"{surprise}: {', '.join(names)}" for surprise, names in surprises.items() if names]
    return "\n".join(lines)


def _weights(model):
    if isinstance(model, (list, tuple)):
        return model
    return model.weights if hasattr(model, "trainable_weights") else model.variables


def _trainable(model):
    if isinstance(model, (list, tuple)):
        return [w for w in model if w.trainable]
    return model.trainable_weights if hasattr(model, "trainable_weights") else model.trainable_variables


def demo():
    import numpy as np
    import tensorflow as tf

    layers = tf.keras.layers
    x, y = np.random.rand(32, 2), np.full((32, 1), 9.0)
    inputs = tf.keras.Input((2,))
    hidden = layers.Dense(4, use_bias=False, name="hidden")(inputs)
    normed = layers.BatchNormalization(center=False, scale=False, name="norm")(hidden)
    model = tf.keras.Model(inputs, layers.Dense(1, use_bias=False, name="head")(normed))

    def fit():
        model.fit(x, y, verbose=0)

    model.compile("sgd", "mse")
    fit()
    model.get_layer("hidden").trainable = False
    print("hidden frozen after a fit, not compiled again:")
    print(report(what_moved(model, fit)))

    model.compile("sgd", "mse")
    print("\ncompiled again:")
    print(report(what_moved(model, fit)))


if __name__ == "__main__":
    demo()
