"""The models that `training.py` compares: one shape, the same batches, Adam, dropout and label smoothing.

Each function takes a size, the batch and a setting; what it returns makes `steps` updates, and says how many target
tokens there were. The stock Keras models have no label smoothing, since Keras' loss of integer labels has none: they
have less to do.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

DROPOUT, SMOOTHING = 0.1, 0.1


def ours(
    size,
    vocabulary,
    rows,
    length,
    steps,
    precision="float32",
    jit_compile=False,
    onednn=True,
    threads=None,
    parallel_parts=1,
    smoothing=SMOOTHING,
):
    """`transformer` with `MaskedCrossentropy`."""
    _prepare_tensorflow(onednn, threads)
    import keras

    from keras_transformer.losses import MaskedCrossentropy
    from keras_transformer.models import transformer

    model = transformer(_config(size, vocabulary), dtype=precision)
    model.compile(
        keras.optimizers.Adam(1e-3),
        MaskedCrossentropy(smoothing),
        jit_compile=jit_compile,
        parallel_parts=parallel_parts,
    )
    return _fit(model, vocabulary, rows, length, steps)


def stock_keras(
    size, vocabulary, rows, length, steps, precision="float32", jit_compile=False, onednn=True, threads=None
):
    """Blocks of `keras.layers.MultiHeadAttention`, `LayerNormalization` and `Dense`."""
    _prepare_tensorflow(onednn, threads)
    import keras

    keras.config.set_dtype_policy(precision)
    config = _config(size, vocabulary)
    attention = {"num_heads": config.num_heads, "key_dim": config.model_dim // config.num_heads}

    def add_norm(x, y):
        return keras.layers.LayerNormalization()(x + keras.layers.Dropout(DROPOUT)(y))

    def feed_forward(x):
        return keras.layers.Dense(config.model_dim)(keras.layers.Dense(config.intermediate_dim, "relu")(x))

    def encoder(x):
        x = add_norm(x, keras.layers.MultiHeadAttention(**attention)(x, x))
        return add_norm(x, feed_forward(x))

    def decoder(x, memory):
        x = add_norm(x, keras.layers.MultiHeadAttention(**attention)(x, x, use_causal_mask=True))
        x = add_norm(x, keras.layers.MultiHeadAttention(**attention)(x, memory))
        return add_norm(x, feed_forward(x))

    return _stock(config, encoder, decoder, jit_compile, rows, length, steps)


def keras_nlp(size, vocabulary, rows, length, steps, precision="float32", jit_compile=False, onednn=True, threads=None):
    """keras-nlp's `TransformerEncoder` and `TransformerDecoder`."""
    _prepare_tensorflow(onednn, threads)
    import keras
    import keras_nlp

    keras.config.set_dtype_policy(precision)
    config = _config(size, vocabulary)
    sizes = {"intermediate_dim": config.intermediate_dim, "num_heads": config.num_heads, "dropout": DROPOUT}

    def encoder(x):
        return keras_nlp.layers.TransformerEncoder(**sizes)(x)

    def decoder(x, memory):
        return keras_nlp.layers.TransformerDecoder(**sizes)(x, memory)

    return _stock(config, encoder, decoder, jit_compile, rows, length, steps)


def pytorch(size, vocabulary, rows, length, steps, precision="float32", compiled=False, threads=None):
    """`torch.nn.Transformer`, eager or under `torch.compile`."""
    import torch
    from torch import nn

    torch.set_num_threads(threads or os.cpu_count())

    config, width = _config(size, vocabulary), _config(size, vocabulary).model_dim

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
            self.transformer = nn.Transformer(
                width,
                config.num_heads,
                config.encoder_layers,
                config.decoder_layers,
                config.intermediate_dim,
                DROPOUT,
                batch_first=True,
            )
            self.register_buffer("positions", torch.tensor(_sinusoids(length, width)))
            self.register_buffer("causal", nn.Transformer.generate_square_subsequent_mask(length))

        def forward(self, source, target):
            x, y = (self.embedding(ids) * width**0.5 + self.positions for ids in (source, target))
            hidden = self.transformer(
                x,
                y,
                tgt_mask=self.causal,
                tgt_is_causal=True,
                src_key_padding_mask=source == 0,
                memory_key_padding_mask=source == 0,
            )
            return hidden @ self.embedding.weight.T

    model = Model()
    forward = torch.compile(model) if compiled else model
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    batch = [torch.tensor(part, dtype=torch.long) for part in _batch(vocabulary, rows, length)]

    def work():
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "mixed_bfloat16"):
                logits = forward(batch[0], batch[1])
            loss = nn.functional.cross_entropy(
                logits.float().reshape(-1, vocabulary), batch[2].reshape(-1), ignore_index=0, label_smoothing=SMOOTHING
            )
            loss.backward()
            optimizer.step()
        return {"tokens": rows * length * steps}

    return work


def matrix_product(size=2048, repeats=20):
    """The most that the machine does: float32 products of two square matrices; counts operations."""
    import tensorflow as tf

    one = tf.random.normal([size, size])
    multiply = tf.function(lambda x: tf.matmul(x, x))

    def work():
        for _ in range(repeats):
            multiply(one).numpy()
        return {"operations": 2 * size**3 * repeats}

    return work


def operations_per_token(size, vocabulary, length):
    """Floating-point operations of a training step for each target token, of sentences of one length on both sides.

    Two for each multiplication with its addition; the backward pass takes twice the forward one. Products alone are
    counted: projections, feed-forward networks, scores and sums of attention, logits.
    """
    config = _config(size, vocabulary)
    width, inner = config.model_dim, config.intermediate_dim
    block = 4 * width * width + 2 * width * length
    encoder = config.encoder_layers * (block + 2 * width * inner)
    decoder = config.decoder_layers * (2 * block + 2 * width * inner)
    return 3 * 2 * (encoder + decoder + width * vocabulary)


def _prepare_tensorflow(onednn, threads=None):
    """Whether oneDNN makes the products, which TensorFlow asks for by itself on some processors only; cores of one
    operation, all of them if None. Operations that do not wait for each other run side by side.
    """
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = str(int(onednn))
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads or 0)


def _config(size, vocabulary):
    from keras_transformer.models import TransformerConfig

    return TransformerConfig.from_preset(size, vocabulary, dropout=DROPOUT)


def _batch(vocabulary, rows, length):
    """Source ids, target ids shifted right, and labels: all cells are real tokens."""
    ids = np.random.default_rng(1).integers(4, vocabulary, (2, rows, length)).astype("int32")
    shifted = np.concatenate([np.full((rows, 1), 2, "int32"), ids[1, :, :-1]], axis=1)
    return ids[0], shifted, ids[1]


def _stock(config, encoder, decoder, jit_compile, rows, length, steps):
    import keras

    embedding = keras.layers.ReversibleEmbedding(config.vocabulary_size, config.model_dim, mask_zero=True)
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in ("source_ids", "target_ids")}
    sides = []
    for ids in inputs.values():
        x = embedding(ids) * config.model_dim**0.5 + _sinusoids(length, config.model_dim)
        sides.append(keras.layers.Dropout(DROPOUT)(x))
    memory, x = sides
    for _ in range(config.encoder_layers):
        memory = encoder(memory)
    for _ in range(config.decoder_layers):
        x = decoder(x, memory)
    model = keras.Model(inputs, embedding(x, reverse=True))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    model.compile(keras.optimizers.Adam(1e-3), loss, jit_compile=jit_compile)
    return _fit(model, config.vocabulary_size, rows, length, steps)


def _fit(model, vocabulary, rows, length, steps):
    import tensorflow as tf

    source, target, labels = _batch(vocabulary, rows, length)
    data = tf.data.Dataset.from_tensors(({"source_ids": source, "target_ids": target}, labels)).repeat()
    options = tf.data.Options()
    options.autotune.enabled = False  # Its thread sleeps for ever longer times, and `fit` waits for it at the end.
    data = data.with_options(options)

    def work():
        model.fit(data, steps_per_epoch=steps, verbose=0)
        return {"tokens": rows * length * steps}

    return work


def _sinusoids(length, width):
    angles = np.arange(length)[:, None] * 10000.0 ** (-2 * np.arange(width // 2) / width)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype("float32")
