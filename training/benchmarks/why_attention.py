"""Why attention: the Transformer beside its predecessors, in speed, in memory of what was read and in translation.

    python training/benchmarks/why_attention.py --to benchmarks
    python training/benchmarks/why_attention.py --to benchmarks --page docs/why_attention.md

Equal numbers of parameters, one loss, one optimizer, the same data. Writes tables, JSON and plots; the second command
puts what the first has measured into a page, and measures nothing. Takes some twelve minutes on two cores.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# What `--only` chooses from: a study's function of `why_attention_studies`, and its sizes, in full and for a trial.
STUDIES = {
    "time": {
        "sizes": {"width": 128, "units": 256, "layers": 2},
        "lengths": [8, 16, 32, 64, 128, 256],
        "batch_tokens": 1024,
        "vocabulary_size": 1000,
        "rounds": 7,
    },
    "memory": {
        "sizes": {"width": 64, "units": 128, "layers": 2},
        "lengths": [4, 8, 16, 32, 64],
        "rows": 32,
        "vocabulary_size": 20,
        "updates": 600,
        "test_rows": 256,
        "rate": 6e-3,
        "warmup": 50,
    },
    "quality": {
        "sizes": {"width": 128, "units": 256, "layers": 2},
        "vocabulary_size": 1500,
        "batch_tokens": 1024,
        "updates": 450,
        "checks": 3,
        "sentences": 200,
        "rate": 3e-3,
        "warmup": 150,
    },
}
_TINY = {"sizes": {"width": 16, "units": 16, "layers": 1}}
QUICK = {
    "time": {**_TINY, "lengths": [4, 8], "batch_tokens": 16, "vocabulary_size": 50, "rounds": 1},
    "memory": {**_TINY, "lengths": [2, 4], "rows": 4, "vocabulary_size": 20, "updates": 2, "test_rows": 4},
    "quality": {**_TINY, "batch_tokens": 64, "updates": 2, "checks": 1, "sentences": 2},
}


def main():
    """Measures, or makes the page. A mistake is one line on standard error and the exit status 2."""
    options = _options()
    try:
        if options.page:
            from why_attention_page import write_page

            write_page(options.page, options.to)
            return
        options.to.mkdir(parents=True, exist_ok=True)
        from keras_transformer.cli import keep_freed_memory

        keep_freed_memory()
        for study in [options.only] if options.only else STUDIES:
            _run(study, options.to, options.quick)
    except (ValueError, ImportError, OSError) as error:
        print(f"why_attention.py: {error}", file=sys.stderr)
        sys.exit(2)


def _options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", default="benchmarks", type=Path, help="folder for the results")
    parser.add_argument("--only", choices=STUDIES, help="one study instead of all three")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--page", type=Path, help="page to put the results of the folder into, instead of measuring")
    options = parser.parse_args()
    if options.page and (options.only or options.quick):
        parser.error("--page measures nothing: leave --only and --quick out")
    return options


def _run(study, folder, quick):
    """One study: its figures as JSON, a plot beside them, and a table on the screen."""
    import tensorflow as tf
    import why_attention_studies
    from why_attention_page import TITLES, plot, table

    started = time.perf_counter()
    sizes = {**STUDIES[study], **(QUICK[study] if quick else {})}
    tf.config.run_functions_eagerly(quick)  # Graphs take longer to make than a trial needs them.
    try:
        results = getattr(why_attention_studies, f"{study}_study")(**sizes)
    finally:
        tf.config.run_functions_eagerly(False)
    results |= {"machine": why_attention_studies.machine(), "took": time.perf_counter() - started}
    path = folder / f"why_attention_{study}.json"
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    plot(study, results, path.with_suffix(".svg"))
    print(f"\n{TITLES[study]}, in {results['took']:.0f} s\n\n{table(study, results)}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
