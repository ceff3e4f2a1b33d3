"""TensorFlow's own loop: "Writing a training loop from scratch in TensorFlow", sped up with tf.function.

https://www.tensorflow.org/guide/keras/writing_a_training_loop_from_scratch, its metrics left out.
"""

import keras
import tensorflow as tf
from recommended.loop import Loop


def models():
    return {
        "mlp": lambda: keras.Sequential(
            [
                keras.Input((784,)),
                keras.layers.Dense(512, activation="relu"),
                keras.layers.Dropout(0.2),
                keras.layers.Dense(512, activation="relu"),
                keras.layers.Dropout(0.2),
                keras.layers.Dense(10),
            ]
        ),
        "cnn": lambda: keras.Sequential(
            [
                keras.Input((28, 28, 1)),
                keras.layers.Conv2D(32, 3, activation="relu"),
                keras.layers.Conv2D(64, 3, activation="relu"),
                keras.layers.MaxPooling2D(2),
                keras.layers.Dropout(0.25),
                keras.layers.Flatten(),
                keras.layers.Dense(128, activation="relu"),
                keras.layers.Dropout(0.5),
                keras.layers.Dense(10),
            ]
        ),
    }


def put(inputs, targets):
    return tf.constant(inputs), tf.constant(targets)


def loops(workload, task):
    model = models()[workload]()
    optimizer = {"mlp": keras.optimizers.RMSprop, "cnn": keras.optimizers.Adadelta}[workload]()
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss_value = loss_fn(y, logits)
        grads = tape.gradient(loss_value, model.trainable_weights)
        optimizer.apply(grads, model.trainable_weights)
        return loss_value

    @tf.function
    def test_step(x):
        return model(x, training=False)

    # On a CPU a tf.function returns when it is done: nothing is waited for on either side.
    if task == "train":
        return {"tf.function": Loop(lambda batch: train_step(*batch), lambda output: None)}
    return {"tf.function": Loop(lambda batch: test_step(batch[0]), lambda output: None)}
