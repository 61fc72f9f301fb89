"""Small runs through the command line, in processes of their own."""

import os
import signal
import subprocess
import sys
import time

import yaml

TINY = {
    "preset": "tiny",
    "encoder_layers": 1,
    "decoder_layers": 1,
    "model_dim": 32,
    "intermediate_dim": 32,
    "dropout": 0.1,
}


# Said to have them already, `train` does not start itself anew, and imports TensorFlow once.
_QUICK = {"TF_CPP_MIN_LOG_LEVEL": "3", "GLIBC_TUNABLES": ""}


def command(*arguments):
    return [sys.executable, "-m", "keras_transformer", *map(str, arguments)]


def run(*arguments, **environment):
    environment = {**os.environ, **_QUICK, **environment}
    return subprocess.run(command(*arguments), env=environment, capture_output=True, text=True, timeout=400)


def stop(recipe, folder, line_to_stop_at, number):
    """Starts a run and sends it a signal a moment after it printed a line; returns its exit status."""
    process = subprocess.Popen(
        command("train", recipe, "--to", folder),
        env={**os.environ, **_QUICK},
        stdout=subprocess.PIPE,
        text=True,
        # A shell starts what it puts in the background with SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    for line in process.stdout:
        if line.startswith(line_to_stop_at):
            time.sleep(0.1)
            process.send_signal(number)
            break
    process.stdout.read()
    return process.wait(timeout=100)


def write_pairs(folder, name, pairs):
    for language, texts in zip(("zh", "en"), zip(*pairs, strict=True), strict=True):
        (folder / f"{name}.{language}").write_text("\n".join(texts) + "\n", encoding="utf-8")
    return {"source": str(folder / f"{name}.zh"), "target": str(folder / f"{name}.en")}


def write_recipe(folder, train, validation, **sections):
    """A small recipe. Batches are computed in one part unless it says otherwise: tracing two takes longer."""
    recipe = {
        "data": {
            "source_language": "zh",
            "target_language": "en",
            "train": [write_pairs(folder, "train", train)],
            "validation": [write_pairs(folder, "validation", validation)],
            "test": [{"source": str(folder / "validation.zh"), "target": str(folder / "validation.en")}],
        },
        "tokenizer": {"vocabulary_size": 1000},
        "model": TINY,
        "optimizer": {"peak_learning_rate": 0.005, "warmup_steps": 30},
        **sections,
        "training": {"parallel_parts": 1, **sections.get("training", {})},
    }
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(recipe, allow_unicode=True), encoding="utf-8")
    return path
