"""The encoder-decoder model of "Attention Is All You Need": its inputs and outputs, how it is trained and saved."""

from __future__ import annotations

import json
import os

import keras
import numpy as np
from keras import ops

from keras_transformer._checks import check_above_zero, check_positive
from keras_transformer.losses import MaskedCrossentropy, token_weights
from keras_transformer.models.accumulation import accumulation_of
from keras_transformer.models.config import TransformerConfig
from keras_transformer.models.distribution import of_this_replica, reducible_logs
from keras_transformer.models.figure_1 import decode, encode, make_layers
from keras_transformer.models.r_drop import disagreement, twice
from keras_transformer.models.structures import labels_of, only
from keras_transformer.models.token_mean import TokenMean

# Fields that a model may differ in from the one whose weights it loads: they act in training only.
_FREE_FIELDS = ("dropout", "attention_dropout", "activation_dropout")


def transformer(config: TransformerConfig, name: str = "transformer", dtype=None) -> Transformer:
    """Builds the Transformer that `config` describes.

    Args:
        config: A `TransformerConfig`.
        name: Name of the model.
        dtype: Dtype policy of the whole model, such as `"mixed_bfloat16"`. Defaults to Keras' global one.

    Returns:
        A functional `keras.Model`. Inputs: `source_ids` [B,S] and `target_ids` [B,T], int32, 0 is padding; target ids
        are shifted right: they begin with the begin-of-sentence id. Output: `logits` [B,T,V], in the compute dtype.
        Padding masks are made from the ids inside the model.

    Raises:
        ValueError: If `config` is not a `TransformerConfig`.

    Example:
        ```python
        import numpy as np
        from keras_transformer.models import TransformerConfig, transformer

        model = transformer(TransformerConfig.from_preset("tiny", vocabulary_size=100))
        logits = model({"source_ids": np.array([[11, 12, 13, 14]]), "target_ids": np.array([[2, 15, 16]])})
        print(logits.shape)
        #> (1, 3, 100)
        ```
    """
    return Transformer(config, name, dtype)


@keras.saving.register_keras_serializable(package="keras_transformer")
class Transformer(keras.Model):
    """The model that `transformer` returns, which documents it.

    Attributes:
        config: The `TransformerConfig`.
        source_embedding, target_embedding: `PositionalEmbedding` layers, one and the same when all embeddings are tied.
        encoder_blocks, decoder_blocks: Lists of `EncoderBlock` and `DecoderBlock`.
        encoder_norm, decoder_norm: The last `LayerNormalization` of each stack under pre-norm, else None.
        output_projection: A `keras.layers.Dense`, or None where the target embedding in reverse projects to logits.
    """

    def __init__(self, config: TransformerConfig, name: str = "transformer", dtype=None):
        if not isinstance(config, TransformerConfig):
            raise ValueError(f"`config` must be a TransformerConfig. Received: {config!r}")
        dtype = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        parts = make_layers(config, dtype)
        source_ids = keras.Input((None,), dtype="int32", name="source_ids")
        target_ids = keras.Input((None,), dtype="int32", name="target_ids")
        memory = encode(config, parts, source_ids, dtype)
        hidden, logits = decode(config, parts, target_ids, memory, dtype)
        super().__init__(
            inputs={"source_ids": source_ids, "target_ids": target_ids},
            outputs=logits,
            name=name,
        )
        self.dtype_policy = dtype
        self.config = config
        self._memory, self._hidden = memory, hidden
        for name, part in parts.items():
            setattr(self, name, part)

    def encoder(self, name: str = "encoder") -> keras.Model:
        """The left half of Figure 1 as a model of its own that shares this one's weights.

        Args:
            name: Name of the model.

        Returns:
            A functional `keras.Model` from `source_ids` [B,S] to the encoder's output [B,S,D], which carries the
            padding mask: layers put on top of it heed it.
        """
        return keras.Model(self.input["source_ids"], self._memory, name=name)

    def compile(self, *args, jit_compile=None, r_drop=None, micro_batches=1, parallel_parts=1, **kwargs):
        """`keras.Model.compile`, with XLA off under TensorFlow unless asked for, R-Drop and micro-batches.

        Keras would turn it on, and XLA compiles anew, for seconds, for every new length of a batch. Say
        `jit_compile=True` where batches have few shapes.

        Under TensorFlow, steps with a `MaskedCrossentropy` and no metrics but `MaskedAccuracy` and `Perplexity` make
        no logits [B,T,V], but those of a chunk of tokens at a time. They do make them with R-Drop, weighted metrics or
        losses, in float16, and where something is overridden that is handed logits.

        With a `MaskedCrossentropy` the loss that `fit` and `evaluate` report is the mean over the tokens of all
        batches, however sentences fell into batches; and with an optimizer that accumulates gradients, an update is the
        one that a single batch of all the sentences would make (under TensorFlow; elsewhere batches weigh equally).

        Args:
            *args: As of `keras.Model.compile`.
            **kwargs: As well.
            jit_compile: Whether to use XLA.
            r_drop: Weight of the divergence between two passes over each batch with other dropout, alpha of R-Drop
                (Liang et al., 2021; they use 5 for translation); None for one pass. Takes twice the time and memory of
                a step. The loss of a step is half that of the paper, mean CE + alpha/2 * divergence for each token, so
                that it compares with the loss without; `evaluate` takes one pass and reports the mean CE alone. Needs
                a `MaskedCrossentropy`.
            micro_batches: Parts that each batch is computed in, one after the other, for want of memory. The update is
                that of the whole batch. Needs a `MaskedCrossentropy`, TensorFlow, and an optimizer that does not
                accumulate gradients itself.
            parallel_parts: Parts of each of these that are computed at the same time, with the same needs. Faster on
                a CPU where each has its share of the cores (`tf.config.threading.set_intra_op_parallelism_threads`);
                `training/benchmarks/training.py` tries it both ways.

        Raises:
            ValueError: If `r_drop` is not above 0, `micro_batches` or `parallel_parts` not at least 1, or one of them
                lacks what it needs.
        """
        self._r_drop = None if r_drop is None else check_above_zero("r_drop", r_drop)
        self._micro_batches = check_positive("micro_batches", micro_batches)
        self._parallel_parts = check_positive("parallel_parts", parallel_parts)
        self._default_jit_compile = jit_compile is None
        if jit_compile is None:
            jit_compile = False if keras.backend.backend() == "tensorflow" else "auto"
        super().compile(*args, jit_compile=jit_compile, **kwargs)
        if self.optimizer is not None:
            # Variables that the first step creates make TensorFlow trace that step twice: seconds.
            self.optimizer.build(self.trainable_variables)
        self._accumulation = None
        if isinstance(only(self.loss), MaskedCrossentropy):
            self._accumulation = accumulation_of(self.optimizer)
            # Past Keras' tracking of attributes, which would list the metric a second time.
            object.__setattr__(self, "_loss_tracker", TokenMean(name="loss"))
        elif self._r_drop or self._parts > 1:
            raise ValueError(
                "`r_drop`, `micro_batches` and `parallel_parts` need a MaskedCrossentropy as the loss. "
                f"Received: loss={self.loss!r}"
            )
        if self._parts > 1 and (self._accumulation or keras.backend.backend() != "tensorflow"):
            raise ValueError(
                "`micro_batches` and `parallel_parts` need TensorFlow, and an optimizer without "
                f"`gradient_accumulation_steps`. Received: micro_batches={micro_batches} on {keras.backend.backend()} "
                f"with {self.optimizer!r}, parallel_parts={parallel_parts}"
            )

    def get_compile_config(self):
        config = super().get_compile_config()
        if config:
            config.update(r_drop=self._r_drop, micro_batches=self._micro_batches, parallel_parts=self._parallel_parts)
            if self._default_jit_compile:
                config["jit_compile"] = None  # The default is the backend's under which the model is loaded.
        return config

    def compile_from_config(self, config):
        # Keras asks for this where `compile` is overridden.
        self.compile(**keras.saving.deserialize_keras_object(config))

    def train_step(self, *args):
        *state, data = args  # JAX hands the state of the variables first.
        if self._parts > 1 or self._needs_no_logits():
            from keras_transformer.models.training_step import training_step

            return reducible_logs(training_step(self, data))
        return reducible_logs(super().train_step(*state, twice(data) if self._r_drop else data))

    @property
    def _parts(self):
        return self._micro_batches * self._parallel_parts

    def test_step(self, *args):
        if self._needs_no_logits():
            from keras_transformer.models.training_step import evaluation_step

            return reducible_logs(evaluation_step(self, args[-1]))
        return reducible_logs(super().test_step(*args))

    def _needs_no_logits(self):
        if keras.backend.backend() != "tensorflow" or type(self) is not Transformer:
            return False
        from keras_transformer.models.training_step import needs_no_logits

        return needs_no_logits(self)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        if not isinstance(self._loss_tracker, TokenMean):
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        crossentropy, labels = only(self.loss), labels_of(y)
        tokens = crossentropy.token_count(labels)
        self._loss_tracker.weigh(tokens)
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        if training and self._r_drop:
            weights = ops.cast(ops.not_equal(labels, crossentropy.ignore_class), "float32")
            if sample_weight is not None:
                weights = weights * token_weights(only(sample_weight), weights)
            divergence = disagreement(only(y_pred), weights)
            # Of T tokens in each pass, 2 T are counted.
            loss = loss + self._r_drop * ops.cast(divergence / ops.maximum(tokens, 1.0), loss.dtype)
        return self._accumulation.weigh(loss, tokens) if training and self._accumulation else loss

    @property
    def trained_tokens(self) -> int:
        """Real target tokens of the epoch so far, in `fit` with a `MaskedCrossentropy`; once under R-Drop, too."""
        return int(of_this_replica(self, self._loss_tracker.count)) // (2 if self._r_drop else 1)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # To learn the shapes of metrics, Keras takes a batch from the data and averages it over the replicas, which
        # fails on ids. The shapes are known.
        if self._distribute_strategy is not None:
            ids = np.zeros((1, 1), "int32")
            super()._maybe_symbolic_build(data_batch=({"source_ids": ids, "target_ids": ids}, ids))

    def save_weights(self, filepath, overwrite=True, **kwargs):
        """`keras.Model.save_weights`, and a file `*.weights.h5` appears whole or not at all.

        So a process that is killed while it saves leaves the file that was there before.
        """
        path = os.fspath(filepath)
        if kwargs or not path.endswith(".weights.h5") or "://" in path or (os.path.exists(path) and not overwrite):
            super().save_weights(filepath, overwrite, **kwargs)
            return
        folder, name = os.path.split(path)
        unfinished = os.path.join(folder, f".{os.getpid()}.{name}")
        try:
            super().save_weights(unfinished)
            os.replace(unfinished, path)
        finally:
            if os.path.exists(unfinished):
                os.remove(unfinished)

    def get_config(self):
        return {
            "config": self.config.to_dict(),
            "name": self.name,
            "frozen": [layer.name for layer in self.layers if not layer.trainable],
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        model = cls(TransformerConfig.from_dict(config["config"]), config["name"], config["dtype"])
        for name in config["frozen"]:
            model.get_layer(name).trainable = False
        return model

    def save_own_variables(self, store):
        # With the weights goes what they are weights of: Keras would load, say, the first four of six blocks and be
        # content.
        store["config"] = np.frombuffer(json.dumps(self.config.to_dict()).encode(), dtype="uint8")

    def load_own_variables(self, store):
        if "config" not in list(store.keys()):
            raise ValueError("These are not the weights of a Transformer of keras_transformer.")
        saved = TransformerConfig.from_dict(json.loads(np.asarray(store["config"]).tobytes())).to_dict()
        differing = [
            f"{name}={saved[name]!r} (here {value!r})"
            for name, value in self.config.to_dict().items()
            if name not in _FREE_FIELDS and saved[name] != value
        ]
        if differing:
            raise ValueError(f"The weights are those of another model. Received: weights with {', '.join(differing)}")
