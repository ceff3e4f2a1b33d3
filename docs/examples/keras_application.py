"""A network of keras.applications, without weights, on Keras' three backends, which are three variants of one run.

kit run --program keras_application.py --batch 8 --variant tensorflow:env=KERAS_BACKEND=tensorflow \
    --variant torch:env=KERAS_BACKEND=torch --variant jax:env=KERAS_BACKEND=jax

Keras compiles for TensorFlow and JAX; with PyTorch it runs eagerly unless compile() gets jit_compile=True.
"""

import keras
import numpy as np

IMAGE, CLASSES = 64, 10  # ImageNet: 224 pixels and 1000 classes


def program(batch, device, task):
    # Keras takes a GPU if it sees one. Steadykit shows it none if `device` is "cpu".
    model = keras.applications.MobileNet((IMAGE, IMAGE, 3), alpha=0.25, weights=None, classes=CLASSES)
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
    images = np.random.default_rng(0).random((batch, IMAGE, IMAGE, 3), np.float32)
    labels = np.arange(batch) % CLASSES
    # Both take NumPy arrays and return them, as in most scripts: a step includes these copies.
    return lambda: model.train_on_batch(images, labels) if task == "train" else model.predict_on_batch(images)
