"""The three studies of `why_attention.py`. Each takes its sizes by name and gives figures, ready for JSON."""

import itertools
import os
import platform
import statistics
import sys
import time

import keras
import numpy as np
import tensorflow as tf
from why_attention_models import made
from why_attention_page import NAMES

from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.schedules import InverseSquareRootSchedule

BOS, EOS, SPECIAL, EXAMPLES = 2, 3, 4, 5
SOLVED = 0.01  # A mean loss of a token at which some 999 of 1,000 are right.
tf.get_logger().setLevel("ERROR")  # It warns of many graphs, one for each model.


class Training:
    """The same loss, optimizer and compiled step for every model, in a plain loop.

    Not `fit`: its data pipeline has threads that sleep, which short timings would count.

    Args:
        model: A model of `why_attention_models`.
        rate: Highest learning rate.
        warmup: Updates until it is reached.
    """

    def __init__(self, model, rate=1e-3, warmup=100):
        self.model = model
        self._loss = MaskedCrossentropy()
        schedule = InverseSquareRootSchedule(rate, warmup)
        self._optimizer = keras.optimizers.Adam(schedule, beta_2=0.98, global_clipnorm=1.0)
        self._optimizer.build(model.trainable_variables)
        # One graph for all lengths: another for each would be traced within the time that is measured.
        ids = tf.TensorSpec([None, None], tf.int32)
        self._step = tf.function(self._update, input_signature=[ids, ids, ids], autograph=False)
        self._next = tf.function(self._best_next, input_signature=[ids, ids], autograph=False)
        self._start = [variable.numpy() for variable in self._variables()]

    def restart(self):
        """Undoes all updates, and keeps the graphs."""
        for variable, value in zip(self._variables(), self._start, strict=True):
            variable.assign(value)

    def update(self, source, target, labels):
        """Makes one update, and waits for it. Returns the loss."""
        return float(self._step(source, target, labels))

    def translate(self, source, most):
        """Greedy search, which calls the whole model again for every token: ids [B,T], 0 after the end."""
        target = np.full((len(source), 1), BOS, "int32")
        while target.shape[1] <= most and not (target == EOS).any(axis=-1).all():
            ended = (target == EOS).any(axis=-1)
            following = np.where(ended, 0, self._next(source, target).numpy())
            target = np.concatenate([target, following[:, None].astype("int32")], axis=1)
        return np.where(target == EOS, 0, target)[:, 1:]

    def accuracy(self, source, target, labels):
        """The share of labels that have the highest logit."""
        logits = self.model({"source_ids": source, "target_ids": target}, training=False)
        return float(np.mean(np.argmax(logits, axis=-1) == labels))

    def _variables(self):
        return [*self.model.variables, *self._optimizer.variables]

    def _update(self, source, target, labels):
        with tf.GradientTape() as tape:
            loss = self._loss(labels, self.model({"source_ids": source, "target_ids": target}, training=True))
        variables = self.model.trainable_variables
        self._optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    def _best_next(self, source, target):
        logits = self.model({"source_ids": source, "target_ids": target}, training=False)
        return tf.argmax(logits[:, -1], axis=-1, output_type=tf.int32)


def time_study(sizes, lengths, batch_tokens, vocabulary_size, rounds):
    """Seconds of a training step for each length of both sides, with the same number of tokens in every batch.

    All models take their steps in turn, so that whatever else the machine does meets all alike.

    Returns:
        `lengths`, and by model `parameters`, median `seconds` and the fastest and slowest of them, `range`, by length.
    """
    trainings = {kind: Training(made(kind, vocabulary_size, **sizes)) for kind in NAMES}
    results = {
        kind: {"parameters": training.model.count_params(), "seconds": [], "range": []}
        for kind, training in trainings.items()
    }
    for length in lengths:
        rng, shape = np.random.default_rng(length), (batch_tokens // length, length)
        batch = [rng.integers(SPECIAL, vocabulary_size, shape).astype("int32") for _ in range(3)]
        taken = {kind: [] for kind in NAMES}
        for number, (kind, training) in itertools.product(range(rounds + 1), trainings.items()):
            seconds, _ = _timed(training, batch)
            if number:  # The first is to warm up.
                taken[kind].append(seconds)
        for kind, seconds in taken.items():
            results[kind]["seconds"].append(statistics.median(seconds))
            results[kind]["range"].append([min(seconds), max(seconds)])
        say(f"time: length {length} done")
    return {"lengths": list(lengths), "batch_tokens": batch_tokens, "rounds": rounds, "models": results}


def memory_study(sizes, lengths, rows, vocabulary_size, updates, test_rows, rate, warmup):
    """Accuracy at giving a source of n random tokens backwards, after as many updates for every model and length.

    Target token t, from 1, stands 2t - 1 tokens back in what has been read, n on average. No token tells of another.
    No batch comes twice, so that its loss tells when a model can do it, and need not go on.

    Returns:
        `lengths`, and by model `parameters`, and `accuracy`, `updates` and `seconds` of the training by length.
    """
    results = {}
    for kind in NAMES:
        training = Training(made(kind, vocabulary_size, dropout=0.0, **sizes), rate, warmup)
        result = {"parameters": training.model.count_params(), "accuracy": [], "updates": [], "seconds": []}
        training.update(*backwards(np.random.default_rng(1), rows, lengths[0], vocabulary_size))
        for length in lengths:
            training.restart()
            rng = np.random.default_rng(length)
            started, number, loss = time.perf_counter(), 0, np.inf
            while number < updates and loss > SOLVED:
                loss, number = training.update(*backwards(rng, rows, length, vocabulary_size)), number + 1
            result["seconds"].append(time.perf_counter() - started)
            result["updates"].append(number)
            result["accuracy"].append(training.accuracy(*backwards(rng, test_rows, length, vocabulary_size)))
            say(f"memory: {kind}, length {length}: {100 * result['accuracy'][-1]:.1f} % after {number} updates")
        results[kind] = result
    about = {"tokens": vocabulary_size - SPECIAL, "rows": rows, "updates": updates}
    return {"lengths": list(lengths), **about, "models": results}


def backwards(rng, rows, length, vocabulary_size):
    """Random source ids, target ids shifted right, and labels: the source from its end, all [rows,length]."""
    source = rng.integers(SPECIAL, vocabulary_size, (rows, length)).astype("int32")
    labels = np.ascontiguousarray(source[:, ::-1])
    return source, np.concatenate([np.full((rows, 1), BOS, "int32"), labels[:, :-1]], axis=1), labels


def quality_study(sizes, vocabulary_size, batch_tokens, updates, checks, sentences, rate, warmup):
    """BLEU on held-out sentences of the Chinese phrasebook, after as many updates and after as many seconds.

    The Transformer is trained first. All others make as many updates, and go on until they have taken its time.

    Returns:
        By model `parameters` and `curve`, points of `updates`, `seconds` of training, `loss`, `bleu` and `examples` of
        translations; of these `same_updates` and `same_seconds`.
    """
    corpus = _Corpus(vocabulary_size, batch_tokens, updates, sentences)
    results, limit = {}, None
    for kind in sorted(NAMES, key=lambda kind: kind != "transformer"):
        training = Training(made(kind, corpus.vocabulary_size, **sizes), rate, warmup)
        curve = _trained(training, corpus, updates, checks, limit)
        full = next(point for point in curve if point["updates"] == updates)
        limit = limit or full["seconds"]
        timed = next(point for point in curve if point["seconds"] >= limit)
        results[kind] = {"parameters": training.model.count_params(), "curve": curve, "same_updates": full}
        results[kind]["same_seconds"] = timed
        say(f"quality: {kind}: BLEU {full['bleu']:.1f} after {updates} updates, {full['seconds']:.0f} s")
    about = {"updates": updates, "seconds": limit, "sentences": len(corpus.references)}
    examples = {"sources": corpus.sources[:EXAMPLES], "references": corpus.references[:EXAMPLES]}
    return {**about, **examples, "models": {kind: results[kind] for kind in NAMES}}


def machine():
    """What was measured on, and with."""
    cores = f"{os.cpu_count()} cores of {platform.processor() or platform.machine()}"
    return {"processor": cores, "tensorflow": f"TensorFlow {tf.__version__}", "keras": f"Keras {keras.__version__}"}


def say(line):
    """Tells how far it is, on standard error."""
    print(line, file=sys.stderr, flush=True)


class _Corpus:
    """Batches of the phrasebook, made beforehand, and what is held out."""

    def __init__(self, vocabulary_size, batch_tokens, batches, sentences):
        from keras_transformer.data import TokenBatches, TokenizedCorpus
        from keras_transformer.data.phrasebook import phrasebook
        from keras_transformer.text import Tokenizer

        pairs = phrasebook("zh", "train")
        self.tokenizer = Tokenizer.train(itertools.chain(*pairs), vocabulary_size)
        self.vocabulary_size = self.tokenizer.vocabulary_size
        data = TokenBatches(TokenizedCorpus.from_pairs(pairs, self.tokenizer), batch_tokens, seed=1).dataset()
        self.batches = [
            (inputs["source_ids"], inputs["target_ids"], labels)
            for inputs, labels in itertools.islice(data.as_numpy_iterator(), batches)
        ]
        self.sources, self.references = map(list, zip(*phrasebook("zh", "validation")[:sentences], strict=True))
        rows = [[*self.tokenizer.encode(source), EOS] for source in self.sources]
        self._source_ids = np.zeros((len(rows), max(map(len, rows))), "int32")
        for place, row in enumerate(rows):
            self._source_ids[place, : len(row)] = row
        self._most = 2 + max(len(self.tokenizer.encode(reference)) for reference in self.references)

    def translations(self, training):
        """The model's translations of what is held out."""
        rows = training.translate(self._source_ids, self._most)
        return [self.tokenizer.decode([int(token) for token in row if token]) for row in rows]

    def scored(self, training):
        """BLEU of these, and the first of them."""
        from keras_transformer.evaluate import score_translations

        found = self.translations(training)
        sides = {"hypotheses": found, "references": self.references}
        score = score_translations(**sides, target_language="en", metrics=["bleu"])["bleu"]
        return {"bleu": score.value, "examples": found[:EXAMPLES]}


def _trained(training, corpus, updates, checks, limit):
    """Trains for the updates, and until the limit in seconds where there is one. Returns the curve."""
    training.update(*corpus.batches[0])  # Graphs are made at the first call, which no time is to count.
    training.restart()
    curve, losses, seconds, number = [], [], 0.0, 0
    while number < updates or (limit and seconds < limit):
        taken, loss = _timed(training, corpus.batches[number % len(corpus.batches)])
        overdue = bool(limit) and seconds < limit <= seconds + taken
        losses, seconds, number = [*losses, loss], seconds + taken, number + 1
        if overdue or number % (updates // checks) == 0 or number == updates:
            point = {"updates": number, "seconds": seconds, "loss": float(np.mean(losses))}
            curve.append({**point, **corpus.scored(training)})
            losses = []
    return curve


def _timed(training, batch):
    """Seconds of one update, and its loss."""
    started = time.perf_counter()
    loss = training.update(*batch)
    return time.perf_counter() - started, loss
