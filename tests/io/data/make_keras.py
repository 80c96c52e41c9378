# SPDX-License-Identifier: Apache-2.0
"""Writes the Keras 3 fixtures of this folder (see README.md); KERAS_BACKEND says with what."""
import pathlib

import keras
import numpy as np

here = pathlib.Path(__file__).parent


def values(shape):
    count = int(np.prod(shape, dtype=np.int64))
    return (np.arange(count) % 113 - 7).astype("f4").reshape(shape)


model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(7, name="dense"),
                          keras.layers.Dense(3, name="head")])
model.set_weights([values(w.shape) for w in model.get_weights()])
model.save(here / "keras.keras")
model.save_weights(here / "keras.weights.h5")
