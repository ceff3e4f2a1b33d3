"""TensorFlow's own loop: "Writing a training loop from scratch in TensorFlow", sped up with tf.function.

https://www.tensorflow.org/guide/keras/writing_a_training_loop_from_scratch, its metrics left out.
"""

import keras
import tensorflow as tf
from recommended.loop import Loop
from recommended.tensorflow_models import MODELS

# Keras' defaults are the workloads' hyperparameters.
OPTIMIZERS = {
    "mlp": keras.optimizers.RMSprop,
    "cnn": keras.optimizers.Adadelta,
    "rnn": keras.optimizers.SGD,
    "resnet50": keras.optimizers.SGD,
}


def put(inputs, targets):
    return tf.constant(inputs), tf.constant(targets)


def loops(workload, task):
    model = MODELS[workload]()
    optimizer = OPTIMIZERS.get(workload, keras.optimizers.Adam)()
    reconstructs = workload == "autoencoder"
    loss_fn = (
        keras.losses.MeanSquaredError()
        if reconstructs
        else keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            outputs = model(x, training=True)
            loss_value = loss_fn(x if reconstructs else y, outputs)
        grads = tape.gradient(loss_value, model.trainable_weights)
        optimizer.apply(grads, model.trainable_weights)
        return loss_value

    @tf.function
    def test_step(x):
        return model(x, training=False)

    # On a CPU a tf.function returns when it is done: nothing is waited for on either side.
    step = (lambda batch: train_step(*batch)) if task == "train" else (lambda batch: test_step(batch[0]))
    return {
        "tf.function": Loop(step, lambda output: None, sum(weight.numpy().size for weight in model.trainable_weights))
    }
