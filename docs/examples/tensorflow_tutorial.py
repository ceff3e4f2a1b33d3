"""The model of TensorFlow's quickstart for experts (https://www.tensorflow.org/tutorials/quickstart/advanced).

kit run --program tensorflow_tutorial.py --batch 32
"""

import tensorflow as tf
from tensorflow.keras import Model
from tensorflow.keras.layers import Conv2D, Dense, Flatten


class MyModel(Model):
    def __init__(self):
        super().__init__()
        self.conv1 = Conv2D(32, 3, activation="relu")
        self.flatten = Flatten()
        self.d1 = Dense(128, activation="relu")
        self.d2 = Dense(10)

    def call(self, x):
        x = self.conv1(x)
        x = self.flatten(x)
        x = self.d1(x)
        return self.d2(x)


model = MyModel()
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam()


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = loss_object(labels, predictions)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


@tf.function
def test_step(images):
    return model(images, training=False)


# The tutorial ends here. The function below makes it a program for `kit run`, for both tasks.
def program(batch, device, task):
    place = {"cpu": "/CPU:0", "gpu": "/GPU:0"}[device]
    with tf.device(place):
        images = tf.random.uniform((batch, 28, 28, 1))
        labels = tf.random.uniform((batch,), maxval=10, dtype=tf.int64)

    def step():
        with tf.device(place):
            return train_step(images, labels) if task == "train" else test_step(images)

    return step
