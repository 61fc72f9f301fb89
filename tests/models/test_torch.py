"""An independent engine agrees: torch.nn.Transformer with the same weights, in float64."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.models import TransformerConfig, transformer

torch = pytest.importorskip("torch", reason="PyTorch, the engine to compare with, is not installed.")

# Said of pre-norm; in training mode torch uses no nested tensors anyway.
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

VOCABULARY, WIDTH, HEADS, INTERMEDIATE, SMOOTHING = 40, 16, 4, 32, 0.1
ENCODER_LAYERS, DECODER_LAYERS = 2, 3

# Torch keeps the projections of queries, keys and values of one attention layer in one matrix, in this order.
ALL, QUERY, KEY_VALUE = slice(None), slice(None, WIDTH), slice(WIDTH, None)
ATTENTIONS = {"self_attention": "self_attn.", "memory_attention": "multihead_attn."}
ATTENTION_PARTS = {
    "query_key_value": ("in_proj_", ALL),
    "query": ("in_proj_", QUERY),
    "key_value": ("in_proj_", KEY_VALUE),
    "output": ("out_proj.", ALL),
}
FEED_FORWARD_PARTS = {"intermediate": "linear1.", "output": "linear2."}
NORMS = {
    "encoder": {"self_attention_norm": "norm1.", "feed_forward_norm": "norm2."},
    "decoder": {"self_attention_norm": "norm1.", "memory_attention_norm": "norm2.", "feed_forward_norm": "norm3."},
}
KINDS = {"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}


def place_in_torch(path):
    """Name and rows of the torch parameter that holds our weight of this path; KeyError for one that is unknown."""
    if path == "embedding/token_embedding/embeddings":
        return "embedding", ALL
    top, *parts, kind = path.split("/")
    stack, rest = top.split("_", 1)
    if rest == "norm":
        return f"{stack}.norm.{KINDS[kind]}", ALL
    sublayer, part = parts
    if sublayer in ATTENTIONS:
        name, rows = ATTENTION_PARTS[part]
        name = ATTENTIONS[sublayer] + name
    elif sublayer == "feed_forward":
        name, rows = FEED_FORWARD_PARTS[part], ALL
    else:
        name, rows = NORMS[stack][sublayer], ALL
    return f"{stack}.layers.{rest.removeprefix('block_')}.{name}{KINDS[kind]}", rows


def randomise_weights(model, rng):
    """Draws all weights, also those that start as zeros or ones, at scales where no gradient vanishes."""
    for weight in model.weights:
        noise = rng.normal(size=weight.shape)
        if weight.name in ("kernel", "embeddings"):
            weight.assign(noise * WIDTH**-0.5)
        else:
            weight.assign(0.2 * noise + (weight.name == "gamma"))


def sinusoids(length):
    angles = np.arange(length)[:, None] / 10000.0 ** (np.arange(0, WIDTH, 2) / WIDTH)
    encoding = np.empty((length, WIDTH))
    encoding[:, 0::2], encoding[:, 1::2] = np.sin(angles), np.cos(angles)
    return torch.from_numpy(encoding)


class TorchModel(torch.nn.Transformer):
    """The whole model: torch's Transformer between an embedding and the projection tied to it."""

    def __init__(self, normalize_first):
        super().__init__(
            WIDTH,
            HEADS,
            ENCODER_LAYERS,
            DECODER_LAYERS,
            INTERMEDIATE,
            dropout=0.0,
            activation="relu",
            layer_norm_eps=1e-6,
            batch_first=True,
            norm_first=normalize_first,
            dtype=torch.float64,
        )
        if not normalize_first:
            self.encoder.norm = self.decoder.norm = None
        self.embedding = torch.nn.Parameter(torch.empty(VOCABULARY, WIDTH, dtype=torch.float64))

    def embed(self, ids):
        return self.embedding[ids] * WIDTH**0.5 + sinusoids(ids.shape[1])

    def logits(self, source_ids, target_ids):
        source_ids, target_ids = torch.from_numpy(source_ids), torch.from_numpy(target_ids)
        length = target_ids.shape[1]
        hidden = self(
            self.embed(source_ids),
            self.embed(target_ids),
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
            src_key_padding_mask=source_ids == 0,
            tgt_key_padding_mask=target_ids == 0,
            memory_key_padding_mask=source_ids == 0,
        )
        return hidden @ self.embedding.T

    def load(self, model):
        parameters = dict(self.named_parameters())
        with torch.no_grad():
            for parameter in parameters.values():
                parameter.fill_(torch.nan)  # One that is left out then shows in every logit.
            for weight in model.weights:
                name, rows = place_in_torch(weight.path)
                parameters[name][rows] = torch.from_numpy(in_torch_layout(weight.path, weight.numpy()))

    def gradient(self, path):
        """The gradient of our weight of this path, in our layout."""
        name, rows = place_in_torch(path)
        return in_torch_layout(path, dict(self.named_parameters())[name].grad[rows].numpy())


def in_torch_layout(path, array):
    """A weight of this path, or its gradient, as torch keeps it, [out,in]; the function is its own inverse."""
    return array.T if path.endswith("/kernel") else array


def padded(rng, lengths, width):
    ids = np.zeros((len(lengths), width), dtype="int64")
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = rng.integers(1, VOCABULARY, length)
    return ids


@pytest.fixture(params=[False, True], ids=["post_norm", "pre_norm"])
def models(request, rng):
    """Our model and torch's with the same weights."""
    config = TransformerConfig(
        vocabulary_size=VOCABULARY,
        encoder_layers=ENCODER_LAYERS,
        decoder_layers=DECODER_LAYERS,
        model_dim=WIDTH,
        intermediate_dim=INTERMEDIATE,
        num_heads=HEADS,
        dropout=0.0,
        normalize_first=request.param,
        tie_embeddings="all",
    )
    ours = transformer(config)
    randomise_weights(ours, rng)
    # Left in training mode: in evaluation torch's encoder may take a fast path that shortens the memory.
    theirs = TorchModel(request.param)
    theirs.load(ours)
    return ours, theirs


@pytest.fixture
def batch(rng):
    """Source ids, target ids shifted right, labels: sentences of unlike lengths, one on each side fills its row."""
    target = padded(rng, (8, 3, 6, 2), 8)
    target[0, 3] = 0  # Behind all real tokens the causal mask alone would hide padding from them.
    labels = target[:, 1:]
    return padded(rng, (4, 9, 1, 6), 9), np.where(labels != 0, target[:, :-1], 0), labels


def test_logits_equal_those_of_torch_at_real_target_positions(models, batch):
    ours, theirs = models
    source_ids, target_ids, labels = batch
    logits = ours({"source_ids": source_ids, "target_ids": target_ids}).numpy()
    expected = theirs.logits(source_ids, target_ids).detach().numpy()
    real = labels != 0
    assert expected[real].std() > 0.5
    np.testing.assert_allclose(logits[real], expected[real], rtol=0, atol=1e-5)


def test_loss_and_gradient_of_every_weight_equal_those_of_torch(models, batch):
    ours, theirs = models
    source_ids, target_ids, labels = batch
    with tf.GradientTape() as tape:
        logits = ours({"source_ids": source_ids, "target_ids": target_ids}, training=True)
        loss = MaskedCrossentropy(SMOOTHING)(labels, logits)
    variables = [weight.value for weight in ours.weights]
    gradients = [tf.convert_to_tensor(gradient).numpy() for gradient in tape.gradient(loss, variables)]

    expected_loss = torch.nn.functional.cross_entropy(
        theirs.logits(source_ids, target_ids).transpose(1, 2),
        torch.from_numpy(labels),
        ignore_index=0,
        label_smoothing=SMOOTHING,
    )
    expected_loss.backward()

    assert abs(float(loss) - float(expected_loss.detach())) <= 1e-5
    for weight, gradient in zip(ours.weights, gradients, strict=True):
        expected = theirs.gradient(weight.path)
        assert np.abs(expected).max() > 5e-4, weight.path  # Else the tolerance would pass anything.
        np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-5, err_msg=weight.path)
