import itertools
import json

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.data import ParallelCorpus, SubwordSampling, TokenBatches, TokenizedCorpus
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.models import TransformerConfig, transformer

V = 600
FIXED = [8, 20, 40]
CONFIGS = [{}, {"fixed_lengths": FIXED}]


@pytest.fixture
def corpus(rng):
    """500 pairs of 2 to 40 tokens, of about equal lengths on both sides; their first tokens number them."""
    target = rng.integers(2, 41, 500)
    lengths = np.stack([np.clip(target + rng.integers(-3, 4, 500), 2, 40), target])
    ids = []
    for side in lengths:
        sentences = [[4 + i, *rng.integers(4, V, length - 2), 3] for i, length in enumerate(side)]
        ids.append(np.array(list(itertools.chain.from_iterable(sentences)), "int32"))
    return TokenizedCorpus(ids, [np.cumsum(side) for side in lengths])


def arrays(dataset):
    """The batches as (source_ids, target_ids, labels)."""
    return [(x["source_ids"], x["target_ids"], labels) for x, labels in dataset.as_numpy_iterator()]


def numbers(batch):
    return [int(row[0]) - 4 for row in batch[0] if row[0]]


def equal(batches, others):
    return len(batches) == len(others) and all(
        np.array_equal(array, other)
        for batch, like in zip(batches, others, strict=True)
        for array, other in zip(batch, like, strict=True)
    )


@pytest.mark.parametrize("options", CONFIGS)
@pytest.mark.parametrize("seed", [None, 3])
def test_every_pair_stands_exactly_once_in_each_pass(corpus, options, seed):
    batches = TokenBatches(corpus, 200, seed, **options)
    passes = [len(batches.plan(epoch)) for epoch in range(1 if seed is None else 3)]
    assert passes[0] == batches.steps_per_epoch > 50
    stream = iter(arrays(batches.dataset().take(sum(passes) + (seed is None))))
    for steps in passes:
        rows = []
        for source, _, labels in itertools.islice(stream, steps):
            rows += [
                (numbers([[row]])[0], row[row != 0].tolist(), label[label != 0].tolist())
                for row, label in zip(source, labels, strict=True)
                if row[0] or label[0]
            ]
        assert sorted(rows) == [(i, *corpus[i]) for i in range(500)]
    assert not list(stream)


@pytest.mark.parametrize("options", CONFIGS)
@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("batch_tokens", [40, 41, 333, 4096, 10**6])
def test_neither_side_of_a_batch_exceeds_its_cells(corpus, options, seed, batch_tokens):
    batches = TokenBatches(corpus, batch_tokens, seed, **options)
    shapes = [array.shape for batch in arrays(batches.dataset().take(batches.steps_per_epoch)) for array in batch]
    assert all(0 < rows * width <= batch_tokens for rows, width in shapes)
    if batch_tokens == 10**6:
        assert batches.steps_per_epoch == (len(FIXED) if options else 1)


def test_batches_hold_as_many_pairs_as_fit(corpus):
    """But the first of a pass, whose size is random, and the last."""
    batches = TokenBatches(corpus, 333)
    plan = batches.plan(0)
    widths = [corpus.lengths[indices].max() for indices in plan]
    for indices, following, width in zip(plan, plan[1:], widths, strict=False):
        assert (len(indices) + 1) * max(width, corpus.lengths[following[0]].max()) > 333


def test_target_ids_are_the_labels_behind_bos_and_without_eos(corpus):
    for options in CONFIGS:
        for source, target, labels in arrays(TokenBatches(corpus, 200, 1, **options).dataset().take(60)):
            assert source.dtype == target.dtype == labels.dtype == "int32" and target.shape == labels.shape
            for target_row, label_row in zip(target.tolist(), labels.tolist(), strict=True):
                *tokens, eos = [token for token in label_row if token] or [None]
                padding = [0] * (len(label_row) - len(tokens) - 1)
                if eos is None:
                    assert not any(target_row) and not any(label_row)
                else:
                    assert eos == 3 and label_row == [*tokens, 3, *padding] and target_row == [2, *tokens, *padding]


PLANS = """
import json, sys
import numpy as np
from keras_transformer.data import TokenBatches, TokenizedCorpus
corpus = TokenizedCorpus.from_folder(sys.argv[1])
plans = [TokenBatches(corpus, 200, 7, **options).plan(3) for options in ({}, {"fixed_lengths": [8, 20, 40]})]
print(json.dumps([[indices.tolist() for indices in plan] for plan in plans]))
"""


def lists(plan):
    return [indices.tolist() for indices in plan]


def test_seed_gives_the_same_batches_in_a_fresh_process(tmp_path, run_python):
    class Numbers:
        eos_id = 3

        def encode(self, text):
            return [int(text)] * (int(text) % 39)

    pairs = [(str(i), str(i + i % 3)) for i in range(4, 300)]
    corpus = TokenizedCorpus.from_pairs(pairs, Numbers(), folder=tmp_path / "ids")
    plans = [lists(TokenBatches(corpus, 200, 7, **options).plan(3)) for options in CONFIGS]
    assert json.loads(run_python(PLANS, tmp_path / "ids").splitlines()[-1]) == plans


@pytest.mark.parametrize("options", CONFIGS)
def test_order_depends_on_the_seed_and_the_pass_alone(corpus, options):
    batches, again = (TokenBatches(corpus, 200, 7, **options) for _ in range(2))
    assert equal(arrays(batches.dataset().take(99)), arrays(again.dataset().take(99)))
    assert lists(batches.plan(5)) == lists(again.plan(5))
    others = [TokenBatches(corpus, 200, seed, **options).plan(0) for seed in (8, -7, 2**63, 2**64 - 8)]
    plans = [*(batches.plan(epoch) for epoch in range(4)), *others]
    assert len({str(lists(plan)) for plan in plans}) == len(plans)
    # Pairs meet others in every pass: of the neighbours in one, not all are neighbours in the next.
    pairs = [{frozenset(two) for row in lists(plan) for two in itertools.combinations(row, 2)} for plan in plans[:2]]
    assert len(pairs[0] & pairs[1]) < 0.7 * len(pairs[0])
    # Short and long batches come in no order.
    widths = [corpus.lengths[indices].max() for indices in plans[0]]
    assert abs(np.corrcoef(widths, np.arange(len(widths)))[0, 1]) < 0.4


@pytest.fixture(scope="module")
def sampled():
    pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")
    from keras_transformer.text import Tokenizer

    words = ["I", "love", "easy", "courses", "Jane", "visits", "Africa", "in", "September", "drinks", "water", "fruit"]
    rng = np.random.default_rng(5)
    pairs = [tuple(" ".join(rng.choice(words, rng.integers(1, 9))) for _ in range(2)) for _ in range(60)]
    tokenizer = Tokenizer.train([text for pair in pairs for text in pair], 310, "bpe")
    return TokenizedCorpus.from_pairs(pairs, tokenizer), tokenizer, pairs


@pytest.mark.parametrize("options", [*CONFIGS, {"sampling": True}, {"sampling": True, "fixed_lengths": [12, 60]}])
def test_dataset_goes_on_at_any_batch_as_if_it_had_met_all_before(corpus, request, options):
    """Across the ends of passes, too."""
    options = dict(options)
    if options.pop("sampling", False):
        corpus, tokenizer, _ = request.getfixturevalue("sampled")
        options["subword_sampling"] = SubwordSampling(tokenizer, alpha=0.2)
    batches = TokenBatches(corpus, 200, 7, **options)
    steps = [len(batches.plan(epoch)) for epoch in range(3)]
    whole = arrays(batches.dataset().take(sum(steps)))
    for first in (0, 1, steps[0] - 1, steps[0], steps[0] + steps[1]):
        assert equal(arrays(batches.dataset(first).take(2)), whole[first : first + 2]), first
    assert not equal(whole[:2], whole[steps[0] : steps[0] + 2])


def test_without_a_seed_there_is_one_pass_in_order_of_length(corpus):
    batches = TokenBatches(corpus, 200)
    whole = arrays(batches.dataset())
    targets = [int((row != 0).sum()) for *_, labels in whole for row in labels]
    assert len(whole) == batches.steps_per_epoch and targets == sorted(targets)
    assert equal(whole, arrays(batches.dataset())) and lists(batches.plan(0)) == lists(batches.plan(1))
    for first in (0, 1, len(whole) - 1, len(whole), len(whole) + 5):
        dataset = batches.dataset(first)
        assert dataset.cardinality().numpy() == max(len(whole) - first, 0)
        assert equal(arrays(dataset), whole[first:])
    assert TokenBatches(corpus, 200, 1).dataset().cardinality().numpy() == tf.data.INFINITE_CARDINALITY


def test_less_than_a_tenth_of_the_cells_is_padding_in_multi30k(request):
    folder = request.config.rootpath.parent / "shared/data/multi30k"
    if not folder.exists():
        pytest.skip(f"needs {folder}")
    pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")
    from keras_transformer.text import Tokenizer

    pairs = list(ParallelCorpus(folder / "train.en.gz", folder / "train.de.gz"))
    tokenizer = Tokenizer.train((text for pair in pairs for text in pair), 8000, "bpe")
    corpus = TokenizedCorpus.from_pairs(pairs, tokenizer)
    for options in ({"seed": 1}, {"batch_tokens": 2048, "seed": 2}, {}):
        batches = TokenBatches(corpus, **options)
        cells = tokens = 0
        for source, _, labels in arrays(batches.dataset().take(batches.steps_per_epoch)):
            cells += source.size + labels.size
            tokens += np.count_nonzero(source) + np.count_nonzero(labels)
        assert tokens == corpus.lengths.sum() and tokens > 0.9 * cells


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("batch_tokens", [40, 100, 333, 4096])
def test_fixed_lengths_are_the_only_shapes(corpus, seed, batch_tokens):
    batches = TokenBatches(corpus, batch_tokens, seed, fixed_lengths=[40, 8, 20])
    rows = {}
    for source, target, labels in arrays(batches.dataset().take(2 * batches.steps_per_epoch)):
        assert source.shape == target.shape == labels.shape
        count, length = source.shape
        longest = max(np.count_nonzero(ids, axis=1).max() for ids in (source, labels))
        assert length == next(fixed for fixed in FIXED if longest <= fixed)
        assert rows.setdefault(length, count) == count
        assert batch_tokens - length < count * length <= batch_tokens or (
            count % 8 == 0 and count + 8 > batch_tokens // length
        )
        real = (labels != 0).any(axis=1)
        assert (real == (source != 0).any(axis=1)).all() and real[: real.sum()].all()
    assert sorted(rows) == FIXED


def test_fixed_lengths_hold_under_subword_sampling(sampled):
    """A sentence that comes out too long for its batch keeps its usual pieces."""
    corpus, tokenizer, pairs = sampled
    lengths = [10, 20, int(corpus.lengths.max())]
    sampling = SubwordSampling(tokenizer, alpha=0.3)
    batches = TokenBatches(corpus, 200, 1, lengths, sampling)
    shapes = set()
    found = []
    whole = arrays(batches.dataset().take(batches.steps_per_epoch))
    for source, _, labels in whole:
        shapes |= {source.shape, labels.shape}
        rows = zip(source, labels, strict=True)
        found += [tuple(map(tokenizer.decode, two)) for two in rows if two[0].any()]
    assert sorted(shapes) == sorted((batches._rows(length), length) for length in lengths)
    assert sorted(found) == sorted(pairs)
    assert sum(np.count_nonzero(labels) for *_, labels in whole) > 1.1 * corpus.lengths[:, 1].sum()


def test_subword_sampling_cuts_the_same_texts_anew_in_each_pass(sampled):
    corpus, tokenizer, pairs = sampled
    batches = TokenBatches(corpus, 400, 1, subword_sampling=SubwordSampling(tokenizer, alpha=0.2))
    steps = [len(batches.plan(epoch)) for epoch in range(2)]
    whole = arrays(batches.dataset().take(sum(steps)))
    pieces = []
    for part in (whole[: steps[0]], whole[steps[0] :]):
        rows = [tuple(row[row != 0].tolist() for row in two) for s, _, t in part for two in zip(s, t, strict=True)]
        assert sorted(tuple(map(tokenizer.decode, two)) for two in rows) == sorted(pairs)
        pieces.append({str(two) for two in rows})
    assert len(pieces[0] & pieces[1]) < 20 and len(pieces[0] & {str(two) for two in corpus}) < 20
    other = TokenBatches(corpus, 400, 2, subword_sampling=SubwordSampling(tokenizer, alpha=0.2))
    assert not equal(arrays(other.dataset().take(3)), whole[:3])
    assert equal(arrays(batches.dataset().take(3)), whole[:3])


def test_rows_without_tokens_change_neither_loss_nor_gradient(corpus):
    fields = {"encoder_layers": 1, "decoder_layers": 1, "model_dim": 8, "intermediate_dim": 16, "num_heads": 2}
    model = transformer(TransformerConfig(V, dropout=0.0, **fields))
    loss_of = MaskedCrossentropy(label_smoothing=0.1)
    batches = TokenBatches(corpus, 400, 1, fixed_lengths=FIXED).dataset().take(60)
    source, target, labels = next(batch for batch in arrays(batches) if 0 < (batch[2][:, 0] == 0).sum() < 40)
    results = []
    for rows in (labels[:, 0] != 0, np.ones(len(labels), "bool")):
        with tf.GradientTape() as tape:
            logits = model({"source_ids": source[rows], "target_ids": target[rows]}, training=True)
            loss = loss_of(labels[rows], logits)
        results.append([loss, *map(tf.convert_to_tensor, tape.gradient(loss, model.trainable_variables))])
    assert float(results[0][0]) > 1
    for expected, value in zip(*results, strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-5)
    model.compile(loss=loss_of)
    whole = [TokenBatches(corpus, 400, **options).dataset() for options in CONFIGS]
    losses = [model.evaluate(dataset, verbose=0) for dataset in whole]
    np.testing.assert_allclose(*losses, rtol=1e-5)


def test_pair_that_does_not_fit_is_refused(corpus):
    for options in ({"batch_tokens": 39}, {"fixed_lengths": [8, 39]}, {"batch_tokens": 39, "fixed_lengths": [8, 38]}):
        with pytest.raises(ValueError, match=r"must fit in a batch.*`max_length`.*Received: a pair of 40 tokens"):
            TokenBatches(corpus, **options)
    assert sum(map(len, TokenBatches(corpus, 40).plan(0))) == 500
    assert TokenBatches(corpus, 40, fixed_lengths=[40]).steps_per_epoch == 500


def test_bad_options_are_refused(corpus):
    for options in (
        {"batch_tokens": 0},
        {"batch_tokens": 99.5},
        {"seed": 1.0},
        {"seed": "1"},
        {"fixed_lengths": [8, 0, 40]},
        {"fixed_lengths": []},
        {"batch_tokens": 300, "fixed_lengths": [40, 301]},
    ):
        with pytest.raises(ValueError, match=f"`{list(options)[-1]}`.*Received: {list(options)[-1]}="):
            TokenBatches(corpus, **options)


TWO_DEVICES = """
import keras, numpy as np, tensorflow as tf
from keras_transformer.data import SubwordSampling, TokenBatches, TokenizedCorpus
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.models import TransformerConfig, transformer

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
assert strategy.num_replicas_in_sync == 2

class Numbers:
    eos_id, vocabulary_size = 3, 50

    def encode(self, text):
        return [int(word) for word in text.split()]

    def decode(self, ids):
        return " ".join(str(token) for token in ids if token > 3)

    def sample(self, texts, alpha, seed):
        rng = np.random.default_rng(seed)
        return [[4 + int(token) for token in rng.integers(0, 46, rng.integers(1, 12))] for _ in texts]

rng = np.random.default_rng(1)
text = lambda length: " ".join(map(str, rng.integers(4, 50, length)))
pairs = [(text(n), text(n + i % 2)) for i, n in enumerate([3] * 3 + [4] * 12 + [7] * 7 + [9] * 2 + [57, 58])]
corpus = TokenizedCorpus.from_pairs(pairs, Numbers())

def rows_of(batch):
    (x, labels) = batch
    return list(zip(*([row[row != 0].tolist() for row in part.numpy()] for part in (*map(x.get, sorted(x)), labels))))

empty = 0
for options in (
    {},
    {"seed": 1},
    {"seed": 1, "fixed_lengths": [6, 12, 60]},
    {"seed": 1, "subword_sampling": SubwordSampling(Numbers())},
    {"seed": 1, "subword_sampling": SubwordSampling(Numbers()), "fixed_lengths": [6, 12, 60]},
):
    batches = TokenBatches(corpus, 60, **options)
    for first in (0, 3):
        dataset = batches.dataset(first) if "seed" in options else batches.dataset().repeat().skip(first)
        alone = [rows_of(batch) for batch in dataset.take(batches.steps_per_epoch + 2)]
        together = iter(batches.distributed(strategy, first))
        for expected in alone:
            x, labels = next(together)
            parts = [strategy.experimental_local_results(part) for part in (x["source_ids"], x["target_ids"], labels)]
            for replica in (0, 1):
                ids = [part[replica] for part in parts]
                assert len({part.shape[0] for part in ids}) == 1 and ids[0].shape[0] > 0
                real = [row for row in rows_of(({"source_ids": ids[0], "target_ids": ids[1]}, ids[2])) if any(row)]
                assert real == [row for row in expected if any(row)][replica::2], (options, first)
                empty += not real
                if "fixed_lengths" in options:
                    assert len({part.shape for part in ids}) == 1 and ids[0].shape[1] in (6, 12, 60)
assert empty > 10
print("same rows")

weights = []
for distributed in (False, True):
    keras.utils.set_random_seed(1)
    batches = TokenBatches(corpus, 60, 1)
    scope = strategy if distributed else tf.distribute.get_strategy()
    with scope.scope():
        model = transformer(TransformerConfig(50, None, 1, 1, 8, 16, 2, dropout=0.0))
        model.compile(keras.optimizers.SGD(0.1), MaskedCrossentropy(0.1))
        weights.append(model.get_weights())
        data = batches.distributed(scope)
        model.fit(data, steps_per_epoch=4, epochs=3, shuffle=False, verbose=0,
                  validation_data=TokenBatches(corpus, 60).distributed(scope), validation_steps=6)
    weights.append(model.get_weights())
moved = max(np.abs(a - b).max() for a, b in zip(*weights[:2]))
apart = max(np.abs(a - b).max() for a, b in zip(weights[1], weights[3]))
assert moved > 0.01 and apart < 1e-5, (moved, apart)
print("same weights")
"""


def test_two_devices_see_the_batches_and_learn_the_weights_of_one(run_python):
    """Also where a batch has one pair, and under subword sampling."""
    assert run_python(TWO_DEVICES).splitlines()[-2:] == ["same rows", "same weights"]


def test_one_device_of_a_strategy_gets_the_usual_batches_without_end(corpus):
    batches = TokenBatches(corpus, 200, 1)
    dataset = batches.distributed(tf.distribute.get_strategy(), first_batch=3)
    assert equal(arrays(dataset.take(5)), arrays(batches.dataset(3).take(5)))
    batches = TokenBatches(corpus, 2000)
    dataset = batches.distributed(tf.distribute.get_strategy())
    assert dataset.cardinality().numpy() == tf.data.INFINITE_CARDINALITY
    assert equal(arrays(dataset.take(2 * batches.steps_per_epoch)), 2 * arrays(batches.dataset()))


@pytest.mark.parametrize("first_batch", [0, 40, 149, 150, 151, 200])
def test_other_batches_may_come_before_and_a_training_that_goes_on_meets_both_where_it_was(corpus, first_batch):
    """150 of another cut, more than a pass of them has, and then the batches from their beginning."""
    batches, others = TokenBatches(corpus, 200, 3), TokenBatches(corpus, 400, 4)
    assert others.steps_per_epoch < 150
    expected = [*arrays(others.dataset().take(150)), *arrays(batches.dataset().take(70))]
    strategy = tf.distribute.get_strategy()
    found = arrays(batches.distributed(strategy, first_batch, before=(others, 150)).take(220 - first_batch))
    assert equal(found, expected[first_batch:])


@pytest.mark.parametrize("count", [-1, 1.5])
def test_number_of_batches_that_come_before_must_be_a_number_from_0(corpus, count):
    batches = TokenBatches(corpus, 400, 1)
    with pytest.raises(ValueError, match=f"`before` must.*Received: .*{count}"):
        batches.distributed(tf.distribute.get_strategy(), before=(batches, count))


@pytest.mark.parametrize("first_batch", [-1, 1.5])
def test_first_batch_must_be_a_number_from_0(corpus, first_batch):
    batches = TokenBatches(corpus, 400)
    with pytest.raises(ValueError, match=f"`first_batch` must be.*Received: first_batch={first_batch}"):
        batches.dataset(first_batch=first_batch)


def test_data_set_is_given_up_at_once(corpus):
    """Of a thread that tunes, whoever ends before the data does would wait for the end of its sleep."""
    assert TokenBatches(corpus, 200).dataset().options().autotune.enabled is False
