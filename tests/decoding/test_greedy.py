import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")

import tensorflow as tf

from keras_transformer.decoding import GreedyDecoder
from keras_transformer.models import TransformerConfig, transformer
from keras_transformer.text import Tokenizer

TEXTS = [
    "I love easy courses",
    "我爱水课",
    "Jane visits Africa in September",
    "water",
    "I",
    "He drinks water and eats fruit; what does that mean?",
]
SIZES = {"encoder_layers": 1, "decoder_layers": 2, "model_dim": 16, "intermediate_dim": 32, "num_heads": 2}
KINDS = {
    "post-norm": {},
    "pre-norm": {"normalize_first": True},
    "untied": {"tie_embeddings": "none", "target_vocabulary_size": 300},
}


@pytest.fixture(scope="module")
def tokenizers():
    return [Tokenizer.train([*TEXTS, *TEXTS], size, "bpe") for size in (310, 300)]


def random_model(tokenizers, kind="post-norm", **fields):
    """A model whose outputs vary: with the usual weights a token would be followed by itself."""
    model = transformer(TransformerConfig(tokenizers[0].vocabulary_size, **SIZES, **KINDS[kind], **fields))
    for weight in model.weights:
        if weight.path.endswith("kernel"):
            weight.assign(8 * weight)
    return model


def without_eos(model):
    """The same with a logit of 0 for eos, which is never the greatest."""
    table = model.target_embedding.token_embedding.embeddings
    table.assign(table * (np.arange(table.shape[0]) != 3)[:, None])
    return model


def end_early(model, outputs):
    """Makes eos as likely as a token that stands within an output, and unk as one that stands at the start."""
    token = next(token for ids in outputs for i, token in enumerate(ids) if i > 1 and token not in ids[:i])
    kernel = model.output_projection.kernel.numpy()
    kernel[:, [3, token]] = kernel[:, [token, 3]]
    kernel[:, 1] = kernel[:, outputs[-1][0]]
    model.output_projection.kernel.assign(kernel)


def decoder_of(model, tokenizers):
    return GreedyDecoder(model, *tokenizers[: 1 + (model.config.target_vocabulary_size is not None)])


def greedy(model, sources):
    """The ids that the whole model gives, run anew over all of the target for each token; times that the ban acted."""
    signature = {name: tf.TensorSpec((1, None), tf.int32) for name in ("source_ids", "target_ids")}
    run = tf.function(lambda ids: model(ids)[0, -1], input_signature=[signature])
    targets, banned = [], 0
    for source in sources:
        target = [2]
        while target[-1] != 3 and len(target) <= len(source) + 50:
            logits = run({"source_ids": [source], "target_ids": [target]}).numpy()
            banned += logits.argmax() < 3
            target.append(3 + int(logits[3:].argmax()))
        targets.append(target[1:])
    return targets, banned


def sources_of(tokenizer):
    return [[*tokenizer.encode(text), 3] for text in TEXTS]


def padded(rows, width=0, count=0):
    array = np.zeros((max(len(rows), count), max([width, *map(len, rows)])), "int32")
    for i, row in enumerate(rows):
        array[i, : len(row)] = row
    return array


@pytest.mark.parametrize("kind", KINDS)
def test_translation_is_that_of_the_whole_model_run_for_each_token(tokenizers, kind):
    """Sources of several lengths at once, one by one there. Unk never comes out, which is the likeliest at times."""
    model = random_model(tokenizers, kind)
    target = tokenizers["target_vocabulary_size" in KINDS[kind]]
    sources = sources_of(tokenizers[0])
    if kind == "untied":
        end_early(model, greedy(model, sources)[0])
    expected, banned = greedy(model, sources)
    decoder = decoder_of(model, tokenizers)
    rows = decoder.decode(padded(sources)).numpy().tolist()
    for row, ids in zip(rows, expected, strict=True):
        assert row == ids + [0] * (len(row) - len(ids))
    assert max(map(len, expected)) == len(rows[0])
    assert decoder.translate(TEXTS) == [" ".join(target.decode(ids).splitlines()) for ids in expected]
    assert len(set(map(tuple, expected))) >= 5 and len({token for ids in expected for token in ids}) > 3
    if kind == "untied":
        assert banned and any(len(ids) > 1 and ids[-1] == 3 for ids in expected)


@pytest.fixture(scope="module")
def decoder(tokenizers):
    keras.utils.set_random_seed(1)
    return decoder_of(random_model(tokenizers), tokenizers)


def test_translation_does_not_depend_on_its_company_its_place_or_padding(decoder, tokenizers, rng):
    expected = decoder.translate(TEXTS)
    assert len(set(expected)) >= 5
    assert [decoder.translate([text])[0] for text in TEXTS] == expected
    for batch_tokens in (1, 30, 60, 10**6):
        order = rng.permutation(12) % 6
        assert decoder.translate([TEXTS[i] for i in order], batch_tokens) == [expected[i] for i in order]
    sources = sources_of(tokenizers[0])
    ids = decoder.decode(padded(sources)).numpy()
    wide = decoder.decode(padded(sources, width=90, count=9)).numpy()
    assert wide[:6, : ids.shape[1]].tolist() == ids.tolist() and not wide[:6, ids.shape[1] :].any()
    assert decoder.translate(iter(TEXTS)) == expected and decoder.translate([]) == []


def test_blank_texts_give_blank_ones_in_their_places(decoder):
    first, second = decoder.translate(TEXTS[:2])
    assert first and second
    assert decoder.translate(["", TEXTS[0], " ", "\n\t\u3000", TEXTS[1], "\u2581"]) == ["", first, "", "", second, ""]
    assert decoder.translate(["", "  "]) == ["", ""]


def test_decoder_is_traced_once_for_all_lengths_and_follows_the_weights(decoder, tokenizers):
    before = decoder.translate(TEXTS)
    for batch_tokens in (1, 30, 4096):
        decoder.translate([text * 2 for text in TEXTS[:3]], batch_tokens)
    model = decoder._model
    model.set_weights(without_eos(random_model(tokenizers)).get_weights())
    assert decoder.translate(TEXTS) != before
    assert decoder.decode.experimental_get_tracing_count() == 1


def test_translation_stops_fifty_tokens_past_its_source(decoder, tokenizers):
    """Eos of the source counts, and each row has a limit of its own."""
    decoder._model.set_weights(without_eos(random_model(tokenizers)).get_weights())
    sources = sources_of(tokenizers[0])
    rows = decoder.decode(padded(sources, width=80)).numpy()
    for row, source in zip(rows, sources, strict=True):
        assert (row[: len(source) + 50] > 3).all() and not row[len(source) + 50 :].any()


def test_translation_stops_where_learned_positions_end(tokenizers):
    decoder = decoder_of(without_eos(random_model(tokenizers, positions="learned", max_length=24)), tokenizers)
    sources = [[5, 6, 3], [*range(4, 27), 3]]
    rows = decoder.decode(padded(sources)).numpy()
    assert rows.shape == (2, 24) and (rows > 3).all()


def test_tokenizer_of_another_size_than_the_model_is_refused(tokenizers):
    one, two = random_model(tokenizers), random_model(tokenizers, "untied")
    for model, chosen, received in (
        (one, tokenizers, r"\(310, 310\). Received: \(310, 300\)"),
        (one, tokenizers[1:], r"\(310, 310\). Received: \(300, 300\)"),
        (two, tokenizers[:1], r"\(310, 300\). Received: \(310, 310\)"),
        (two, tokenizers[::-1], r"\(310, 300\). Received: \(300, 310\)"),
    ):
        with pytest.raises(ValueError, match=f"as many ids as the model, {received}"):
            GreedyDecoder(model, *chosen)


def test_bad_batch_tokens_are_refused(decoder):
    with pytest.raises(ValueError, match="`batch_tokens`.*Received: batch_tokens=0"):
        decoder.translate(TEXTS, batch_tokens=0)
