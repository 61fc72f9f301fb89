"""Translation: sentences a second and the latency of one, beside CTranslate2 and Hugging Face's Marian on PyTorch.

    python training/benchmarks/decoding.py runs/multi30k-en-de --source test_2016_flickr.en.gz --to benchmarks

All have the weights of one trained model. Writes tables, JSON and plots.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from harness import Peer, compare, save, table

LATENCY_SENTENCES, EOS = 100, 3


def main():
    """Compares all peers, greedy and with a beam of 4, then one sentence after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="folder of a run or a preset")
    parser.add_argument("--source", required=True, help="file to translate, plain or gzip")
    parser.add_argument("--to", default="benchmarks", type=Path, help="folder for the results")
    parser.add_argument("--rounds", default=5, type=int, help="how often each peer does the work")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _export(options.run, Path(folder))
        _write_sources(options.run, options.source, Path(folder) / "all")
        _write_sources(options.run, options.source, Path(folder) / "few", LATENCY_SENTENCES)
        for beam_size in (1, 4):
            results = compare(peers(options.run, Path(folder), "all", beam_size), options.rounds)
            title = f"Translation, {'greedy' if beam_size == 1 else f'beam of {beam_size}'}"
            save(options.to / f"decoding_beam_{beam_size}.json", title, results, "sentences")
            print(f"\n{title}\n\n{table(results, 'sentences')}\n", flush=True)
        results = compare(peers(options.run, Path(folder), "few", 1, one_by_one=True), options.rounds)
        save(options.to / "decoding_latency.json", "One sentence after the other, greedy", results, "sentences")
        print(f"\nLatency of one sentence, greedy\n\n{latencies(results)}")


def peers(run, folder, sources, beam_size, one_by_one=False):
    """All engines, with the settings to try. Samplers of keras-nlp search with this package's model and step.

    Args:
        run: Folder of the run.
        folder: Where the model lies as the other engines want it, and the sentences.
        sources: Name of the files of sentences, by suffix as text, as pieces and as ids.
        beam_size: Width of the beam.
        one_by_one: Whether sentences come one after the other.
    """
    shared = {"beam_size": beam_size, "one_by_one": one_by_one}
    texts, pieces, ids = (str(folder / f"{sources}.{suffix}") for suffix in ("txt", "pieces.json", "ids.json"))
    threads = {"threads": [1, 2]}
    batches = {} if one_by_one else {"batch_size": [32, 64, 128]}
    onednn = {"onednn": [False, True]}
    # Of several batches two are computed at a time, and two threads for each never won.
    alone = {**threads, "jit_compile": [False, True]}
    ours = {**onednn, **(alone if one_by_one else {"batch_tokens": [2048, 4096, 8192]})}
    served = {**onednn, **({} if one_by_one else {"batch_size": [125, 250, 500]})}
    arguments = {"run": run, "source": texts, **shared}
    made = [Peer("keras_transformer, Python", "decoding_peers:python", arguments, ours)]
    if beam_size == 1 and not one_by_one:  # A beam and a compiled search compute them anyway.
        arguments = {**arguments, "return_scores": True}
        made.append(Peer("keras_transformer, Python, with scores", "decoding_peers:python", arguments, ours))
    made.append(
        Peer(
            "keras_transformer, SavedModel",
            "decoding_peers:saved_model",
            {"run": run, "folder": str(folder / "model" / "1"), "source": texts, **shared},
            served,
        )
    )
    for compute_type in ("float32", "int8"):
        arguments = {"folder": str(folder / "ctranslate2"), "source": pieces, "compute_type": compute_type, **shared}
        workers = {"workers": [1] if one_by_one else [1, 2], **threads, **batches}
        made.append(Peer(f"CTranslate2, {compute_type}", "decoding_peers:ctranslate2", arguments, workers))
    # Its beam search takes half a second for a sentence, so that it has the first of them only, and one setting.
    arguments = {"run": run, "source": str(folder / "few.ids.json"), **shared}
    name = f"samplers of keras-nlp, {LATENCY_SENTENCES} sentences"
    made.append(Peer(name, "decoding_peers:keras_nlp", arguments, {**threads, **onednn} if beam_size == 1 else {}))
    arguments = {"file": str(folder / "marian.pt"), "source": ids, **shared}
    made.append(
        Peer("Marian of Hugging Face, PyTorch", "decoding_peers:marian", arguments, {**threads, **batches}),
    )
    return made


def latencies(results):
    """A Markdown table: median and 99th percentile of one sentence, in milliseconds, and the ratio of medians."""
    lines = ["| | median ms | p99 ms | ratio |", "|---|---|---|---|"]
    first = statistics.median(results[0]["latencies"])
    for result in results:
        median, p99 = statistics.median(result["latencies"]), statistics.quantiles(result["latencies"], n=100)[-1]
        lines.append(f"| {result['name']} | {1000 * median:.1f} | {1000 * p99:.1f} | {first / median:.2f} |")
    return "\n".join(lines)


def _export(run, folder):
    """Writes the model as every engine wants it: a peer that loads it needs nothing of TensorFlow unless it is ours."""
    from marian_model import save_marian

    from keras_transformer.checkpoints import load_preset
    from keras_transformer.decoding import Translator
    from keras_transformer.export import export_ctranslate2

    model, source_tokenizer, target_tokenizer = load_preset(run)
    Translator(model, source_tokenizer, target_tokenizer).export(folder / "model", warmup=False)
    export_ctranslate2(folder / "ctranslate2", model, source_tokenizer, target_tokenizer)
    save_marian(folder / "marian.pt", model)


def _write_sources(run, source, path, most=None):
    """Writes the sentences as text, as pieces and as ids."""
    from keras_transformer.checkpoints import load_tokenizers
    from keras_transformer.data.lines import read_lines

    tokenizer = load_tokenizers(Path(run))[0]
    texts = [line.decode("utf-8") for line in read_lines(source)][:most]
    ids = [tokenizer.encode(text) for text in texts]
    path.with_suffix(".txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    path.with_suffix(".pieces.json").write_text(json.dumps([tokenizer.pieces(row) for row in ids]))
    path.with_suffix(".ids.json").write_text(json.dumps([[*row, EOS] for row in ids]))


if __name__ == "__main__":
    sys.exit(main())
