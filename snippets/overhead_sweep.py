"""When does eager mode cost nothing? Training steps from tiny to large, eager and in a graph.

    python overhead_sweep.py            about two minutes on two cores
    python overhead_sweep.py --quick    a first look

Dense networks of several depths, widths and batch sizes take the same training step twice: with every
operation called from Python, and with the whole step in one tf.function. The arithmetic is the same, so
what eager takes longer is mostly the cost of the calls. Needs TensorFlow and paired_timing.py beside this file.
"""

import statistics

import paired_timing

WIDTHS = {4: (32, 128, 512, 2048), 16: (32, 128, 512, 1024)}  # of as many layers
BATCHES = (8, 64, 512)
ROUNDS, SAMPLE_SECONDS, TOLERANCE = 11, 0.08, 1e-3
HIDDEN = 1.1  # eager mode costs little where it takes no more than this many times the graph's time


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

    points = [(depth, width, batch) for depth in WIDTHS for width in WIDTHS[depth] for batch in BATCHES]
    if options.quick:
        points = [(4, width, batch) for width in (32, 512) for batch in (8, 64)]
    checks = {}
    settings = {"rounds": 5 if options.quick else ROUNDS, "sample_seconds": SAMPLE_SECONDS, "together": True}
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
    """For each depth: eager = overhead + slope * graph, fitted to the ratios by relative least squares.

    The overhead is what the calls cost whatever their size; a slope over 1 is what a graph saves besides. hidden_from: the graph's time from which eager takes at most HIDDEN times as long, or None if the
    slope alone is more. off: the typical relative miss of the fit.
    """
    laws = []
    for depth in sorted({point["depth"] for point in points(record)}):
        pairs = [(1 / p["graph"]["seconds"], p["eager"]["ratio"]) for p in points(record) if p["depth"] == depth]
        overhead, slope = _line(pairs)
        if slope < 1:  # eager never does less than the graph
            overhead, slope = sum((r - 1) * x / r**2 for x, r in pairs) / sum((x / r) ** 2 for x, r in pairs), 1.0
        off = statistics.median(abs(overhead * x + slope - ratio) / ratio for x, ratio in pairs)
        hidden_from = overhead / (HIDDEN - slope) if slope < HIDDEN else None
        laws.append({"depth": depth, "overhead": overhead, "slope": slope, "hidden_from": hidden_from, "off": off})
    return laws


def _line(pairs):
    """(a, b) of ratio = a * x + b with the least sum of squared relative misses."""
    xx, x1, ones, right_x, right_1 = (
        sum(term(x, r) for x, r in pairs)
        for term in (
            lambda x, r: (x / r) ** 2,
            lambda x, r: x / r**2,
            lambda x, r: 1 / r**2,
            lambda x, r: x / r,
            lambda x, r: 1 / r,
        )
    )
    determinant = xx * ones - x1 * x1
    return (right_x * ones - right_1 * x1) / determinant, (xx * right_1 - x1 * right_x) / determinant


def told(each):
    """A law in words."""
    text = f"eager = {paired_timing.duration(each['overhead'])} + {each['slope']:.2f} x graph"
    if each["hidden_from"]:
        return f"{text}, {HIDDEN} times the graph from steps of {paired_timing.duration(each['hidden_from'])} on"
    return f"{text}, levelling off near {each['slope']:.1f} times the graph"


def show(record):
    lines = ["layers  width  batch      graph      eager  eager/graph"]
    for point in points(record):
        graph, eager = point["graph"]["seconds"], point["eager"]["seconds"]
        row = (point["depth"], point["width"], point["batch"], paired_timing.duration(graph), paired_timing.duration(eager))
        word = "" if point["eager"]["word"] == "slower" else "  " + point["eager"]["word"]
        lines.append("{:6}  {:5}  {:5}  {:>9}  {:>9}  {:11.2f}{}".format(*row, point["eager"]["ratio"], word))
    for each in law(record):
        lines.append(f"\n{each['depth']} layers: {told(each)}, typically within {each['off']:.0%}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    paired_timing.main(__file__, build, show)
