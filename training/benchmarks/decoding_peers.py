"""The engines that `decoding.py` compares, all with the weights of one trained model.

Each function takes the folder or file of the model, a file of sentences, a beam width and a setting; what it returns
translates all sentences, and says how many they are, and all at once how many tokens their translations have, their end
counted. The length penalty is off, whose definitions differ, and no translation may be longer than `LIMIT` tokens.
"""

import itertools
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

LIMIT, BOS, EOS = 100, 2, 3


def python(
    run,
    source,
    beam_size,
    one_by_one=False,
    return_scores=False,
    threads=1,
    onednn=True,
    batch_tokens=4096,
    jit_compile=False,
):
    """`Translator`, from text to text, and their scores where they are wanted."""
    _tensorflow(threads, onednn)
    from keras_transformer.decoding import Translator

    translator, texts = Translator.from_preset(run), _texts(source)
    if jit_compile:
        translator.jit_compile(beam_size=beam_size)
    options = {"beam_size": beam_size, "length_penalty": 0, "max_length": LIMIT, "return_scores": return_scores}

    def work(texts):
        return translator.translate(texts, batch_tokens=batch_tokens, **options)

    return _counted(work, texts, one_by_one, lambda translation: len(translation.token_ids))


def saved_model(run, folder, source, beam_size, one_by_one=False, threads=1, onednn=True, requests=2, batch_size=500):
    """The signature `translate` of an exported model, asked by several callers at a time, in the order of the texts.

    It always gives scores.
    """
    tf = _tensorflow(threads, onednn)
    import tensorflow_text  # noqa: F401

    from keras_transformer.checkpoints import load_tokenizers

    loaded, texts, target_tokenizer = tf.saved_model.load(folder), _texts(source), load_tokenizers(Path(run))[1]

    def ask(texts):
        constants = {"beam_size": beam_size, "n_best": 1, "length_penalty": 0.0, "max_length": LIMIT}
        options = {name: tf.fill([len(texts)], value) for name, value in constants.items()}
        prefix = tf.fill([len(texts)], "")
        answer = loaded.signatures["translate"](text=tf.constant(texts), target_prefix=prefix, **options)
        return answer["translations"].numpy()[:, 0].tolist()

    def work(texts):
        parts = [texts[i : i + batch_size] for i in range(0, len(texts), batch_size)]
        with ThreadPoolExecutor(requests) as executor:
            return list(itertools.chain.from_iterable(executor.map(ask, parts)))

    def tokens_of(translation):  # It gives text alone, which is cut into tokens anew.
        return min(len(target_tokenizer.encode(translation.decode("utf-8"))) + 1, LIMIT)

    return _counted(ask if one_by_one else work, texts, one_by_one, tokens_of)


def keras_nlp(run, source, beam_size, one_by_one=False, threads=1, onednn=True, batch_size=64):
    """The samplers of keras-nlp around this package's model and its step: from ids to ids.

    They go on until every hypothesis has ended, with caches of full length.
    """
    tf = _tensorflow(threads, onednn)
    from keras_nlp import samplers

    from keras_transformer.checkpoints import load_preset
    from keras_transformer.decoding.step import EncodedSources, Ensemble

    ensemble = Ensemble([load_preset(run)[0]])
    sampler = samplers.GreedySampler() if beam_size == 1 else samplers.BeamSampler(num_beams=beam_size)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)], autograph=False)
    def search(ids):
        sources, rows = EncodedSources(ensemble, ids, beam_size, LIMIT), tf.shape(ids)[0]

        def step(prompt, cache, index):
            last = tf.reshape(tf.gather(prompt, index - 1, axis=1), (-1, beam_size))
            logits, cache = sources.step(last, cache, index - 1)
            return tf.reshape(logits, (-1, logits.shape[-1])), None, cache

        prompt = tf.pad(tf.fill([rows, 1], BOS), [[0, 0], [0, LIMIT - 1]])
        cache = tf.nest.map_structure(lambda part: part[:rows], sources.caches)
        return sampler(step, prompt, cache, index=1, stop_token_ids=[EOS])

    def work(ids):
        return [row for batch in _batches(ids, batch_size) for row in search(tf.constant(batch)).numpy().tolist()]

    return _counted(work, json.loads(Path(source).read_text()), one_by_one, _tokens)


def ctranslate2(
    folder, source, beam_size, one_by_one=False, compute_type="float32", workers=2, threads=1, batch_size=64
):
    """CTranslate2, from pieces to pieces: `source` is a file of lists of them."""
    import ctranslate2 as engine

    translator = engine.Translator(folder, inter_threads=workers, intra_threads=threads, compute_type=compute_type)
    options = {"beam_size": beam_size, "length_penalty": 0, "max_decoding_length": LIMIT, "disable_unk": True}

    def work(pieces):
        return translator.translate_batch(pieces, max_batch_size=batch_size, **options)

    def tokens_of(result):  # Without the end of the sentence.
        return min(len(result.hypotheses[0]) + 1, LIMIT)

    return _counted(work, json.loads(Path(source).read_text()), one_by_one, tokens_of)


def marian(file, source, beam_size, one_by_one=False, threads=2, batch_size=64):
    """`generate` of Hugging Face's Marian on PyTorch, from ids to ids: `source` is a file of lists of them."""
    import torch

    torch.set_num_threads(threads)
    model = torch.load(file, weights_only=False)
    options = {"num_beams": beam_size, "length_penalty": 0.0, "max_new_tokens": LIMIT, "do_sample": False}

    def work(ids):
        found = []
        for batch in _batches(ids, batch_size):
            rows = torch.tensor(batch)
            with torch.inference_mode():
                found += model.generate(
                    rows, attention_mask=(rows != 0).long(), suppress_tokens=[0, 1, 2], **options
                ).tolist()
        return found

    return _counted(work, json.loads(Path(source).read_text()), one_by_one, _tokens)


def _tokens(ids):
    """Tokens of a row of ids behind its first one, which begins it, the end of the sentence counted."""
    return ids.index(EOS) if EOS in ids else len(ids) - 1


def _counted(work, sentences, one_by_one, tokens_of):
    """All sentences at once, or one after the other with the seconds that each took.

    `tokens_of` says how many tokens one of the results has. They are counted the first time, which warms up.
    """
    if not one_by_one:
        counts = {"sentences": len(sentences)}

        def all_at_once():
            results = work(sentences)
            if "tokens" not in counts:
                counts["tokens"] = sum(map(tokens_of, results))
            return counts

        return all_at_once

    def each():
        times = []
        for sentence in sentences:
            started = time.perf_counter()
            work([sentence])
            times.append(time.perf_counter() - started)
        return {"sentences": len(sentences), "latencies": times}

    return each


def _batches(ids, batch_size):
    """Sentences of like lengths together, padded behind."""
    order = sorted(ids, key=len, reverse=True)
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        yield [row + [0] * (len(batch[0]) - len(row)) for row in batch]


def _texts(source):
    from keras_transformer.data.lines import read_lines

    return [line.decode("utf-8") for line in read_lines(source)]


def _tensorflow(threads, onednn):
    """TensorFlow, with oneDNN or without: by itself it asks for it on some processors only."""
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = str(int(onednn))
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    return tf
