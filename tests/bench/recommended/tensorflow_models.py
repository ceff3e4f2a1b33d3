"""The networks in Keras' own layers.

Recurrent ones are those of https://keras.io/guides/working_with_rnns/. The transformer projects its tokens and embeds
their places as https://keras.io/examples/vision/image_classification_with_vision_transformer/ does its patches', and is
pre-norm as it is; its attention is causal. ResNet-50 is made as in Keras Applications, with its stride in the 3 x 3
convolution (https://github.com/keras-team/keras/blob/master/keras/src/applications/resnet.py); GPT-2 is the decoder of
https://keras.io/examples/generative/text_generation_with_miniature_gpt/, pre-norm, with its table for the logits, too.
"""

import keras
from keras import layers
from recommended.sizes import DEPTH, DEPTHS, FILTERS, HEADS, LENGTH, SIDE, VOCABULARY, WIDTH


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


def residual_block(x, filters, stride):
    def normed(x, filters, side, stride=1):
        if side > 1 and stride > 1:
            x = layers.ZeroPadding2D(side // 2)(x)
        padding = "valid" if stride > 1 else "same"
        x = layers.Conv2D(filters, side, strides=stride, padding=padding, use_bias=False)(x)
        return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)

    shortcut = normed(x, 4 * filters, 1, stride) if stride > 1 or x.shape[-1] != 4 * filters else x
    x = layers.Activation("relu")(normed(x, filters, 1))
    x = layers.Activation("relu")(normed(x, filters, 3, stride))
    return layers.Activation("relu")(layers.Add()([shortcut, normed(x, 4 * filters, 1)]))


def resnet50():
    inputs = keras.Input((SIDE, SIDE, 3))
    x = layers.ZeroPadding2D(3)(inputs)
    x = layers.Conv2D(FILTERS, 7, strides=2, use_bias=False)(x)
    x = layers.Activation("relu")(layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x))
    x = layers.MaxPooling2D(3, strides=2)(layers.ZeroPadding2D(1)(x))
    for stage, depth in enumerate(DEPTHS):
        for number in range(depth):
            x = residual_block(x, FILTERS * 2**stage, 2 if stage and not number else 1)
    return keras.Model(inputs, layers.Dense(1000)(layers.GlobalAveragePooling2D()(x)))


class TransformerBlock(layers.Layer):
    def __init__(self):
        super().__init__()
        self.norm1 = layers.LayerNormalization(epsilon=1e-5)
        self.attention = layers.MultiHeadAttention(HEADS, WIDTH // HEADS)
        self.norm2 = layers.LayerNormalization(epsilon=1e-5)
        self.wide = layers.Dense(4 * WIDTH, activation=lambda x: keras.activations.gelu(x, approximate=True))
        self.narrow = layers.Dense(WIDTH)

    def call(self, x):
        normed = self.norm1(x)
        x = x + self.attention(normed, normed, use_causal_mask=True)
        return x + self.narrow(self.wide(self.norm2(x)))


class GPT2(keras.Model):
    def __init__(self):
        super().__init__()
        self.token_emb = layers.Embedding(VOCABULARY, WIDTH)
        self.pos_emb = layers.Embedding(LENGTH, WIDTH)
        self.blocks = [TransformerBlock() for _ in range(DEPTH)]
        self.norm = layers.LayerNormalization(epsilon=1e-5)

    def call(self, x, training=False):
        x = self.token_emb(x) + self.pos_emb(keras.ops.arange(LENGTH))
        for block in self.blocks:
            x = block(x)
        x = self.norm(x if training else x[:, -1])
        return keras.ops.matmul(x, keras.ops.transpose(self.token_emb.embeddings))


def gpt2():
    model = GPT2()
    model(keras.ops.zeros((1, LENGTH), "int32"))
    return model


MODELS = {
    "mlp": mlp,
    "cnn": cnn,
    "cnn_small": cnn_small,
    "rnn": rnn,
    "lstm": lstm,
    "autoencoder": autoencoder,
    "dblstm": dblstm,
    "transformer": transformer,
    "resnet50": resnet50,
    "gpt2": gpt2,
}
