"""The networks in Keras' own layers.

Recurrent ones are those of https://keras.io/guides/working_with_rnns/. The transformer projects its tokens and embeds
their places as https://keras.io/examples/vision/image_classification_with_vision_transformer/ does its patches', and is
pre-norm as it is; its attention is causal.
"""

import keras
from keras import layers


def mlp():
    return keras.Sequential(
        [
            keras.Input((784,)),
            layers.Dense(512, activation="relu"),
            layers.Dropout(0.2),
            layers.Dense(512, activation="relu"),
            layers.Dropout(0.2),
            layers.Dense(10),
        ]
    )


def cnn():
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Dropout(0.25),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dropout(0.5),
            layers.Dense(10),
        ]
    )


def cnn_small():
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(64, 2, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.Dropout(0.3),
            layers.Conv2D(32, 2, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.Dropout(0.3),
            layers.Flatten(),
            layers.Dense(256, activation="relu"),
            layers.Dropout(0.5),
            layers.Dense(10),
        ]
    )


def autoencoder():
    return keras.Sequential(
        [
            keras.Input((784,)),
            layers.Dense(128, activation="relu"),
            layers.Dense(64, activation="relu"),
            layers.Dense(32, activation="relu"),
            layers.Dense(64, activation="relu"),
            layers.Dense(128, activation="relu"),
            layers.Dense(784, activation="sigmoid"),
        ]
    )


def rnn():
    return keras.Sequential([keras.Input((28, 28)), layers.SimpleRNN(256), layers.Dense(10)])


def lstm():
    return keras.Sequential([keras.Input((28, 28)), layers.LSTM(128), layers.Dense(10)])


def dblstm():
    return keras.Sequential(
        [
            keras.Input((128, 9)),
            layers.Bidirectional(layers.LSTM(64, return_sequences=True)),
            layers.LSTM(64),
            layers.Dense(6),
        ]
    )


class TokenEncoder(layers.Layer):
    def __init__(self, tokens, width):
        super().__init__()
        self.tokens = tokens
        self.projection = layers.Dense(width)
        self.position_embedding = layers.Embedding(input_dim=tokens, output_dim=width)

    def call(self, x):
        positions = keras.ops.expand_dims(keras.ops.arange(start=0, stop=self.tokens, step=1), axis=0)
        return self.projection(x) + self.position_embedding(positions)


def transformer():
    inputs = keras.Input((28, 28))
    x = TokenEncoder(28, 64)(inputs)
    for _ in range(2):
        normed = layers.LayerNormalization(epsilon=1e-5)(x)
        seen = layers.MultiHeadAttention(num_heads=4, key_dim=16)(normed, normed, use_causal_mask=True)
        x = layers.Add()([seen, x])
        normed = layers.LayerNormalization(epsilon=1e-5)(x)
        wide = layers.Dense(256, activation="gelu")(normed)
        x = layers.Add()([layers.Dense(64)(wide), x])
    x = layers.LayerNormalization(epsilon=1e-5)(x)
    return keras.Model(inputs, layers.Dense(10)(x[:, -1]))


MODELS = {
    "mlp": mlp,
    "cnn": cnn,
    "cnn_small": cnn_small,
    "rnn": rnn,
    "lstm": lstm,
    "autoencoder": autoencoder,
    "dblstm": dblstm,
    "transformer": transformer,
}
