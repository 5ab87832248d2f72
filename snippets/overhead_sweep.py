"""When does eager mode cost nothing? Training steps from tiny to large, eager and in a graph.

    python overhead_sweep.py            about a minute and a half on two cores
    python overhead_sweep.py --quick    a first look

Dense networks of several depths, widths and batch sizes take the same training step twice: with every
operation called from Python, and with the whole step in one tf.function. The arithmetic is the same, so
what eager takes longer is the cost of the calls. Needs TensorFlow and paired_timing.py beside this file.
"""

import statistics

import paired_timing

DEPTHS, WIDTHS, BATCHES = (4, 16), (32, 128, 512, 1024), (8, 64, 512)
MOST = 1.5e10  # floating-point operations per step: larger points take too long
ROUNDS, SAMPLE_SECONDS, TOLERANCE = 11, 0.08, 1e-3
HIDDEN = 1.1  # eager mode costs nothing to speak of when it takes this many times the graph's time


def operations(depth, width, batch):
    """Multiplications and additions of a step: one forward pass, and two of its size backward."""
    return 6 * batch * depth * width * width


def train_step(tf, depth, width):
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.layers.Dense(width, activation="relu") for _ in range(depth)])
    model.build((None, width))
    optimizer = tf.keras.optimizers.SGD(1e-4)
    optimizer.build(model.trainable_variables)

    def step(inputs):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(inputs, training=True)))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return step


def repeat(step, inputs):
    def run(steps):
        for _ in range(steps):
            loss = step(inputs)
        return float(loss)

    return run


def build(options):
    import tensorflow as tf

    depths, widths, batches = (DEPTHS[:1], WIDTHS[::2], BATCHES[:2]) if options.quick else (DEPTHS, WIDTHS, BATCHES)
    points = [(d, w, b) for d in depths for w in widths for b in batches if operations(d, w, b) <= MOST]
    checks = {}
    settings = {"rounds": 5 if options.quick else ROUNDS, "sample_seconds": SAMPLE_SECONDS}
    return (group(tf, *point, checks) for point in points), settings, checks


def group(tf, depth, width, batch, checks):
    inputs = tf.random.normal([batch, width], seed=1)
    name = f"{depth} layers of {width}, batch {batch}"
    eager, counted = train_step(tf, depth, width), paired_timing.Counted(train_step(tf, depth, width))
    graph = tf.function(counted)
    cells = [
        paired_timing.Cell("graph", repeat(graph, inputs), "in @tf.function", traces=lambda: counted.runs),
        paired_timing.Cell("eager", repeat(eager, inputs), "eager"),
    ]

    def check():
        losses = {cell.name: cell.run(1) for cell in cells}
        checks[f"loss of the second step, {name}"] = paired_timing.agree("The loss of the second step", losses, TOLERANCE)

    facts = {"depth": depth, "width": width, "batch": batch, "operations": operations(depth, width, batch)}
    return paired_timing.Group(name, cells, facts=facts, check=check)


def points(record):
    """One dict a point: depth, width, batch, operations, and the estimates of both cells."""
    for estimate in paired_timing.estimates(record):
        cells = {cell["name"]: cell for cell in estimate["cells"]}
        yield dict(estimate["facts"], graph=cells["graph"], eager=cells["eager"], stable=estimate["stable"])


def law(record):
    """For each depth: eager = graph + overhead, fitted by relative least squares, and where the overhead is hidden.

    `off` is the typical relative miss of the fit.
    """
    laws = []
    for depth in sorted({point["depth"] for point in points(record)}):
        times = [(p["graph"]["seconds"], p["eager"]["seconds"]) for p in points(record) if p["depth"] == depth]
        overhead = sum((eager - graph) / eager**2 for graph, eager in times) / sum(1 / eager**2 for _, eager in times)
        off = statistics.median(abs(graph + overhead - eager) / eager for graph, eager in times)
        laws.append({"depth": depth, "overhead": overhead, "hidden_from": overhead / (HIDDEN - 1), "off": off})
    return laws


def show(record):
    lines = ["layers  width  batch      graph      eager  eager/graph"]
    for point in points(record):
        graph, eager = point["graph"]["seconds"], point["eager"]["seconds"]
        row = (point["depth"], point["width"], point["batch"], paired_timing.duration(graph), paired_timing.duration(eager))
        word = "" if point["eager"]["word"] == "slower" else "  " + point["eager"]["word"]
        lines.append("{:6}  {:5}  {:5}  {:>9}  {:>9}  {:11.2f}{}".format(*row, point["eager"]["ratio"], word))
    for each in law(record):
        overhead, hidden_from = paired_timing.duration(each["overhead"]), paired_timing.duration(each["hidden_from"])
        lines.append(
            f"\n{each['depth']} layers: eager = graph + {overhead}, typically within {each['off']:.0%}; "
            f"eager/graph is {HIDDEN} where the graph takes {hidden_from}"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    paired_timing.main(__file__, build, show)
