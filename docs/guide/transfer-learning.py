# ---
# title: Transfer learning with Keras, train only the output layer (notebook)
# description: Freeze a base, train a new output layer, prove that the base did not move, cache its features, then fine-tune it.
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Transfer learning: train only the output layer
#
# Freeze the base with `base.trainable = False`, put a new output layer on it, compile, fit: only that layer learns.
# This notebook does it from end to end on data it draws itself, proves that the base does not move, trains the same
# head on cached features, and then unfreezes the base. Nothing is downloaded from the network.
# [Download the notebook](transfer-learning.ipynb).
#
# ## The data: two tasks that share something
#
# Noisy pictures of stripes. The source task has many pictures and eight directions. The target task is the one you care
# about: 256 pictures and four classes, two with narrower stripes and two with wider ones than the source task has.

# %%
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
columns, rows = np.meshgrid(np.arange(16), np.arange(16))


def stripes(kinds, count):
    """Pictures of stripes; a kind is (direction, width)."""
    labels = rng.integers(0, len(kinds), count)
    direction, width = np.array(kinds).T[:, labels, None, None]
    across = columns * np.cos(direction) + rows * np.sin(direction)
    shift = rng.uniform(0, 1, (count, 1, 1))
    waves = np.sin(2 * np.pi * (across / width + shift))
    images = waves + rng.normal(0, 1.5, waves.shape)
    return images[..., None].astype("float32"), labels


source_kinds = [(k * np.pi / 8, 6) for k in range(8)]
source_x, source_y = stripes(source_kinds, 4096)
target_kinds = [(0.2, 5), (0.2, 8), (1.4, 5), (1.4, 8)]
x, y = stripes(target_kinds, 256)
val_x, val_y = stripes(target_kinds, 1024)
print(source_x.shape, x.shape, val_x.shape)

# %% [markdown] tags=["expected"]
# ```text
# (4096, 16, 16, 1) (256, 16, 16, 1) (1024, 16, 16, 1)
# ```

# %% [markdown]
# ## Stage 0: a base that knows something
#
# Usually this is a `tf.keras.applications` model with `weights="imagenet"` and `include_top=False`. Here the base learns
# the source task. The accuracies in this notebook are rounded to one decimal.

# %%
layers = tf.keras.layers
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def accuracy(model, x, y):
    predicted = model.predict(x, verbose=0).argmax(axis=1)
    return round(float(np.mean(predicted == y)), 1)


base = tf.keras.Sequential([
    tf.keras.Input((16, 16, 1)),
    layers.Conv2D(16, 5, strides=2, use_bias=False),
    layers.BatchNormalization(),
    layers.ReLU(),
    layers.Conv2D(32, 3, strides=2, use_bias=False),
    layers.BatchNormalization(),
    layers.ReLU(),
    layers.GlobalAveragePooling2D(),
])
source_model = tf.keras.Sequential([base, layers.Dense(8)])
source_model.compile(tf.keras.optimizers.Adam(3e-3), loss)
source_model.fit(source_x, source_y, epochs=4, verbose=0)
print("accuracy on the source task:", accuracy(source_model, source_x, source_y))

# %% [markdown] tags=["expected"]
# ```text
# accuracy on the source task: 1.0
# ```

# %% [markdown]
# ## Stage 1: freeze the base, train the new output layer
#
# `base.trainable = False` comes before `compile`. Of the twelve weights, two are left to train: the kernel and the bias
# of the new layer. They start at random values and are trained from scratch; the base keeps what it learned.
# (A model that has an output layer already: [replace it](fine-tuning.md#replace-head).)

# %%
base.trainable = False
head = layers.Dense(4)
model = tf.keras.Sequential([tf.keras.Input((16, 16, 1)), base, head])
model.compile(tf.keras.optimizers.Adam(1e-2), loss)
print(len(model.trainable_weights), "of", len(model.weights), "weights train")
print("better than guessing:", accuracy(model, val_x, val_y) > 0.3)

base_before, head_before = base.get_weights(), head.get_weights()
model.fit(x, y, epochs=20, verbose=0)
print("accuracy on new pictures:", accuracy(model, val_x, val_y))

# %% [markdown] tags=["expected"]
# ```text
# 2 of 12 weights train
# better than guessing: False
# accuracy on new pictures: 0.7
# ```

# %% [markdown]
# ### Did the frozen base move?
#
# Compare the weights before and after, bit for bit. `get_weights` returns copies, among them the moving
# statistics of the `BatchNormalization` layers, which are no trainable weights and could move without the optimizer.

# %%
def moved(before, layer):
    pairs = zip(before, layer.get_weights())
    return [bool(np.any(old != new)) for old, new in pairs]


print("base:", any(moved(base_before, base)), "head:", moved(head_before, head))

# %% [markdown] tags=["expected"]
# ```text
# base: False head: [True, True]
# ```

# %% [markdown]
# ## The same head on cached features
#
# A frozen base gives the same features for the same picture in every epoch. Compute them once, then train the head alone:
# the base no longer runs at all. This holds as long as the pictures do not change, so not with random augmentation, and
# the base holds no `Dropout`, which freezing does not switch off: `EfficientNetB0` has some, `MobileNetV2` none. There the
# cached features are those without dropout. What it saves is [measured](fine-tuning.md#cost).

# %%
features = base.predict(x, verbose=0)
cached_head = layers.Dense(4)
on_features = tf.keras.Sequential([tf.keras.Input((32,)), cached_head])
on_features.compile(tf.keras.optimizers.Adam(1e-2), loss)
on_features.fit(features, y, epochs=20, verbose=0)

whole = tf.keras.Sequential([base, cached_head])
print("features:", features.shape)
print("accuracy on new pictures:", accuracy(whole, val_x, val_y))

# %% [markdown] tags=["expected"]
# ```text
# features: (256, 32)
# accuracy on new pictures: 0.7
# ```

# %% [markdown]
# Putting the trained head back on the base gives a model that takes pictures again.
#
# ## Stage 2: fine-tune the base
#
# The frozen features were made for stripes of another width. Unfreeze the base, but not its `BatchNormalization` layers,
# and compile again with a new optimizer and a smaller learning rate.

# %%
after_stage_1 = model.get_weights()
base.trainable = True
for layer in base.layers:
    if isinstance(layer, layers.BatchNormalization):
        layer.trainable = False

model.compile(tf.keras.optimizers.Adam(1e-3), loss)
print("trainable weights:", len(model.trainable_weights))
model.fit(x, y, epochs=10, verbose=0)
print("accuracy on new pictures:", accuracy(model, val_x, val_y))
print("moved:", moved(base_before, base))

# %% [markdown] tags=["expected"]
# ```text
# trainable weights: 4
# accuracy on new pictures: 0.9
# moved: [True, False, False, False, False, True, False, False, False, False]
# ```

# %% [markdown]
# ### What happens without freezing BatchNormalization
#
# The same stage again from the same weights, with every layer unfrozen and a learning rate of zero. The optimizer
# changes nothing, and yet four arrays of the base move: the mean and the variance of both layers.
# Calling the base with `training=False` prevents this in Keras 2 and
# [does not prevent it in Keras 3](fine-tuning.md#batchnorm).

# %%
model.set_weights(after_stage_1)
for layer in base.layers:
    layer.trainable = True

model.compile(tf.keras.optimizers.Adam(0.0), loss)
model.fit(x, y, verbose=0)
print("moved:", moved(base_before, base))

# %% [markdown] tags=["expected"]
# ```text
# moved: [False, False, False, True, True, False, False, False, True, True]
# ```

# %% [markdown]
# ### What happens with a large learning rate
#
# With 0.1 instead of 0.001 the base forgets: the model is worse than before fine-tuning, and the base has lost the source
# task too.

# %%
model.set_weights(after_stage_1)
for layer in base.layers:
    layer.trainable = not isinstance(layer, layers.BatchNormalization)

model.compile(tf.keras.optimizers.Adam(0.1), loss)
model.fit(x, y, epochs=10, verbose=0)
print("worse than the frozen base:", accuracy(model, val_x, val_y) < 0.7)
source_accuracy = accuracy(source_model, source_x, source_y)
print("still knows the source task:", source_accuracy > 0.5)

# %% [markdown] tags=["expected"]
# ```text
# worse than the frozen base: True
# still knows the source task: False
# ```

# %% [markdown]
# ## Next
#
# - [Fine-tuning](fine-tuning.md): the order of the stages, what `training=False` does, learning rates.
# - [Input preprocessing](preprocessing.md): what each `tf.keras.applications` family expects.
# - [Freezing layers](freezing-layers.md): which `trainable` wins, and when a change takes effect.
