"""Three ways to train the same network, and three variants, timed against Keras's fit().

    python training_modes.py            about two minutes on two cores
    python training_modes.py --quick    a first look

30,000 images of eight shapes are drawn, so nothing is downloaded. Every mode starts from the same
weights, sees the same batches and must reach the same loss; one epoch must teach the network the shapes.
Needs TensorFlow, NumPy and paired_timing.py beside this file.
"""

import itertools
import time

import numpy as np
import paired_timing

IMAGES, TEST_IMAGES, SIDE = 30_000, 2_000, 32
CLASSES = ("disc", "ring", "square", "frame", "triangle", "cross", "stripes", "bars")
BATCHES = (20, 128)
PER_EXECUTION = 10  # steps in one call of the graph, for the variant with steps_per_execution
CHECK_STEPS, TOLERANCE = 10, 1e-3


def draw(count, seed):
    """Images as uint8 [count, SIDE, SIDE, 3] and their classes: a shape of random place, size and colour, with noise."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, len(CLASSES), count)
    images = np.empty((count, SIDE, SIDE, 3), np.uint8)
    grid = np.arange(SIDE, dtype=np.float32)
    for start in range(0, count, 1000):
        label = labels[start : start + 1000]
        some = len(label)
        size = random.uniform(6, 11, (some, 1, 1)).astype(np.float32)
        x = grid[None, None, :] - random.uniform(11, 20, (some, 1, 1)).astype(np.float32)
        y = grid[None, :, None] - random.uniform(11, 20, (some, 1, 1)).astype(np.float32)
        round_, box = np.hypot(x, y), np.maximum(abs(x), abs(y))
        inside = box < size
        shapes = (
            round_ < size,
            (round_ < size) & (round_ > size * 0.6),
            inside,
            inside & (box > size * 0.6),
            inside & (y > 2 * abs(x) - size),
            inside & (np.minimum(abs(x), abs(y)) < size * 0.25),
            inside & (np.floor(y / 3) % 2 == 0),
            inside & (np.floor(x / 3) % 2 == 0),
        )
        mask = np.select([(label == k)[:, None, None] for k in range(len(CLASSES))], shapes)[..., None]
        back, colour = random.integers(0, 100, (some, 1, 1, 3)), random.integers(140, 230, (some, 1, 1, 3))
        noise = random.integers(0, 25, (some, SIDE, SIDE, 1))
        images[start : start + some] = np.where(mask, colour, back) + noise
    return images, labels.astype(np.int32)


class Mode:
    """A model of its own that trains in one way, and a count of how often Python ran its loss."""

    def __init__(self, tf, name, weights=None, **compiled):
        self.tf, self.name, self.python_runs = tf, name, 0
        layers = tf.keras.layers
        self.model = tf.keras.Sequential(
            [
                layers.Rescaling(1 / 255),
                layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
                layers.Conv2D(64, 3, strides=2, padding="same", activation="relu"),
                layers.Conv2D(128, 3, strides=2, padding="same", activation="relu"),
                layers.Flatten(),
                layers.Dense(64, activation="relu"),
                layers.Dense(len(CLASSES)),
            ]
        )
        self.model.build((None, SIDE, SIDE, 3))
        self.optimizer = tf.keras.optimizers.Adam(1e-3)
        self.optimizer.build(self.model.trainable_variables)
        if weights is not None:
            self.model.set_weights(weights)
        self.start = [variable.numpy() for variable in self.variables()]
        self.step = self.train_step
        if compiled:
            self.model.compile(self.optimizer, loss=self.loss, **compiled)

    def variables(self):
        return list(self.model.variables) + list(self.optimizer.variables)

    def reset(self):
        for variable, value in zip(self.variables(), self.start):
            variable.assign(value)

    def loss(self, labels, scores):
        self.python_runs += 1
        return self.tf.keras.losses.sparse_categorical_crossentropy(labels, scores, from_logits=True)

    def train_step(self, images, labels):
        with self.tf.GradientTape() as tape:
            loss = self.tf.reduce_mean(self.loss(labels, self.model(images, training=True)))
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return loss

    def loop(self, batches, steps):
        """An own training loop; the mean loss, and the seconds from the first step on."""
        batches = iter(batches)
        start = time.perf_counter()
        losses = [self.step(images, labels) for images, labels in itertools.islice(batches, steps)]
        loss = float(self.tf.reduce_mean(self.tf.stack(losses)))
        return loss, time.perf_counter() - start

    def fit(self, batches, steps):
        """The same with fit(): the clock runs from the first step until the epoch's loss is known."""
        watch = stopwatch(self.tf)
        history = self.model.fit(
            batches, steps_per_epoch=steps, epochs=1, shuffle=False, verbose=0, callbacks=[watch]
        )
        return history.history["loss"][0], watch.seconds


def stopwatch(tf):
    class Stopwatch(tf.keras.callbacks.Callback):
        _supports_tf_logs = True  # spares Keras 2 the copy of every step's loss to the host

        def on_train_batch_begin(self, batch, logs=None):
            if batch == 0:
                self.start = time.perf_counter()

        def on_epoch_end(self, epoch, logs=None):
            float(logs["loss"])
            self.seconds = time.perf_counter() - self.start

    return Stopwatch()


def modes(tf):
    """The modes, all with the weights of the first; the loops' steps are graph or plain Python."""
    fit = Mode(tf, "fit", jit_compile=False)
    weights = fit.model.get_weights()
    graph_loop, eager_loop = Mode(tf, "graph loop", weights), Mode(tf, "eager loop", weights)
    graph_loop.step = tf.function(graph_loop.train_step)
    return {
        "fit": (fit, "fit()"),
        "graph loop": (graph_loop, "own loop, step in @tf.function"),
        "eager loop": (eager_loop, "own loop, eager"),
        "fit eager": (Mode(tf, "fit eager", weights, run_eagerly=True), "fit(), run_eagerly=True"),
        "fit jit": (Mode(tf, "fit jit", weights, jit_compile=True), "fit(), jit_compile=True"),
        "fit many": (
            Mode(tf, "fit many", weights, jit_compile=False, steps_per_execution=PER_EXECUTION),
            f"fit(), steps_per_execution={PER_EXECUTION}",
        ),
    }


def build(options):
    import tensorflow as tf

    options.say("drawing the images")
    count = IMAGES // 5 if options.quick else IMAGES
    images, labels = draw(count, seed=1)
    tf.keras.utils.set_random_seed(2021)
    groups, checks = [], {}
    for size in BATCHES:
        data = tf.data.Dataset.from_tensor_slices((images, labels)).batch(size, drop_remainder=True)
        batches = data.repeat().prefetch(2)
        everyone = modes(tf)
        runs = {name: mode.loop if "loop" in name else mode.fit for name, (mode, _) in everyone.items()}

        def check(size=size, batches=batches, everyone=everyone, runs=runs):
            options.say(f"batch {size}: the same {CHECK_STEPS} steps in every mode")
            losses = {}
            for name, (mode, _) in everyone.items():
                mode.reset()
                losses[name] = runs[name](batches, CHECK_STEPS)[0]
            checks[f"mean loss of {CHECK_STEPS} steps, batch {size}"] = paired_timing.agree(
                f"The mean loss of {CHECK_STEPS} steps", losses, TOLERANCE
            )
            if size == BATCHES[-1]:
                options.say("one epoch, to see that the network learns")
                checks["accuracy after an epoch"] = accuracy_after_an_epoch(everyone["fit"][0], batches, count // size)

        cells = [
            paired_timing.Cell(
                name,
                lambda steps, run=runs[name], batches=batches: run(batches, steps),
                label,
                multiple=PER_EXECUTION if name == "fit many" else 1,
                traces=lambda mode=mode: mode.python_runs,
                each_unit="eager" in name,
            )
            for name, (mode, label) in everyone.items()
        ]
        groups.append(paired_timing.Group(f"batch {size}", cells, facts={"batch": size}, check=check))
    settings = {
        "images": count,
        "image": [SIDE, SIDE, 3],
        "classes": len(CLASSES),
        "parameters": int(everyone["fit"][0].model.count_params()),
        "optimizer": "Adam",
    }
    return groups, settings, checks


def accuracy_after_an_epoch(mode, batches, steps):
    mode.reset()
    mode.fit(batches, steps)
    images, labels = draw(TEST_IMAGES, seed=2)
    scores = mode.model.predict(images, batch_size=500, verbose=0)
    accuracy = float((scores.argmax(axis=1) == labels).mean())
    chance = 1 / len(CLASSES)
    if accuracy < 3 * chance:
        raise paired_timing.Void(f"The network did not learn: accuracy {accuracy:.3f} after an epoch, chance is {chance}.")
    return {"value": accuracy, "images": TEST_IMAGES, "chance": chance}


if __name__ == "__main__":
    paired_timing.main(__file__, build)
