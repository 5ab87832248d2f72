"""Training a new head: run the frozen base at every step, or run it once and keep its features.

    python cached_features.py           about half a minute on two cores
    python cached_features.py --quick   a first look

The base is a small convolutional network; with a larger one the difference grows. Needs TensorFlow and
paired_timing.py beside this file.
"""

import paired_timing

SIDE, BATCH, CLASSES, FILTERS = 64, 16, 8, (16, 32, 64, 64)


def frozen_base(tf):
    layers = tf.keras.layers
    base = tf.keras.Sequential()
    for filters in FILTERS:
        base.add(layers.Conv2D(filters, 3, strides=2, padding="same", use_bias=False))
        base.add(layers.BatchNormalization())
        base.add(layers.ReLU())
    base.add(layers.GlobalAveragePooling2D())
    base.build((None, SIDE, SIDE, 3))
    base.trainable = False
    return base


def train_step(tf, model, inputs, labels):
    """A step in a tf.function, and the count of its traces."""
    optimizer = tf.keras.optimizers.Adam(1e-4)
    optimizer.build(model.trainable_variables)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def step():
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(inputs, training=True))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    counted = paired_timing.Counted(step)
    return tf.function(counted), counted


def repeat(step):
    def run(steps):
        for _ in range(steps):
            result = step()
        return float(result)

    return run


def build(options):
    import tensorflow as tf

    tf.keras.utils.set_random_seed(1)
    images, labels = tf.random.normal([BATCH, SIDE, SIDE, 3]), tf.random.uniform([BATCH], 0, CLASSES, tf.int32)
    base = frozen_base(tf)
    features = base(images, training=False)
    whole = tf.keras.Sequential([base, tf.keras.layers.Dense(CLASSES)])
    whole.build((None, SIDE, SIDE, 3))
    head = tf.keras.Sequential([tf.keras.layers.Dense(CLASSES)])
    head.build(features.shape)
    head.set_weights(whole.layers[-1].get_weights())
    (step, steps_traced), (head_step, head_traced) = train_step(tf, whole, images, labels), train_step(tf, head, features, labels)
    make = paired_timing.Counted(lambda: tf.reduce_mean(base(images, training=False)))
    make_graph = tf.function(make)
    runs = {"base each step": repeat(step), "cached": repeat(head_step)}
    checks = {}

    def check():
        for model in (whole, head):
            model.layers[-1].set_weights(start)
        losses = {name: run(1) for name, run in runs.items()}
        checks["loss of a step"] = paired_timing.agree("The loss of a step", losses, 1e-3)

    start = head.get_weights()
    cells = [
        paired_timing.Cell("base each step", runs["base each step"], "base and head, every step", traces=lambda: steps_traced.runs),
        paired_timing.Cell("cached", runs["cached"], "head alone, on kept features", traces=lambda: head_traced.runs),
        paired_timing.Cell("making", repeat(make_graph), "making the features, once", traces=lambda: make.runs),
    ]
    groups = [paired_timing.Group(f"batch {BATCH}", cells, facts={"batch": BATCH}, check=check)]
    return groups, {"batch": BATCH, "image": [SIDE, SIDE, 3], "features": int(features.shape[-1])}, checks


if __name__ == "__main__":
    paired_timing.main(__file__, build)
