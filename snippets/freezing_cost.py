"""What freezing the base of a network saves in a training step.

    python freezing_cost.py           about a minute on two cores
    python freezing_cost.py --quick   a first look

A small convolutional base with BatchNormalization and a new head: everything trains, the base is frozen,
or only its last block and the head train. Each step runs in one tf.function. Needs TensorFlow and
paired_timing.py beside this file.
"""

import paired_timing

SIDE, BATCH, CLASSES, FILTERS = 64, 16, 8, (16, 32, 64, 64)


def network(tf):
    """(model, base, last block of the base)"""
    layers = tf.keras.layers
    blocks = [
        tf.keras.Sequential(
            [layers.Conv2D(filters, 3, strides=2, padding="same", use_bias=False), layers.BatchNormalization(), layers.ReLU()]
        )
        for filters in FILTERS
    ]
    base = tf.keras.Sequential(blocks + [layers.GlobalAveragePooling2D()])
    model = tf.keras.Sequential([base, layers.Dense(CLASSES)])
    model.build((None, SIDE, SIDE, 3))
    return model, base, blocks[-1]


def train_step(tf, model, data):
    optimizer = tf.keras.optimizers.Adam(1e-4)
    variables = model.trainable_variables
    optimizer.build(variables)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def step():
        images, labels = data
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    counted = paired_timing.Counted(step)
    return tf.function(counted), counted


def repeat(step):
    def run(steps):
        for _ in range(steps):
            loss = step()
        return float(loss)

    return run


def build(options):
    import tensorflow as tf

    tf.keras.utils.set_random_seed(1)
    data = tf.random.normal([BATCH, SIDE, SIDE, 3]), tf.random.uniform([BATCH], 0, CLASSES, tf.int32)
    cells, trained = [], {}
    for key, label in (("all", "everything trains"), ("last block", "base frozen but for its last block"), ("head", "base frozen")):
        model, base, last = network(tf)
        if key == "head":
            base.trainable = False
        if key == "last block":
            for layer in base.layers:
                layer.trainable = layer is last
        step, counted = train_step(tf, model, data)
        trained[key] = sum(int(tf.size(variable)) for variable in model.trainable_variables)
        cells.append(paired_timing.Cell(key, repeat(step), label, traces=lambda c=counted: c.runs))
    settings = {"batch": BATCH, "image": [SIDE, SIDE, 3], "parameters that train": trained}
    return [paired_timing.Group(f"batch {BATCH}", cells, facts={"batch": BATCH})], settings, {}


if __name__ == "__main__":
    paired_timing.main(__file__, build)
