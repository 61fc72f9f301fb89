import json
import shutil

import h5py
import keras
import numpy as np
import pytest

from keras_transformer.checkpoints import average_checkpoints, load_preset, load_weights, save_preset
from keras_transformer.decoding import Translator
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.models import TransformerConfig, transformer
from keras_transformer.text import Tokenizer

V = 40
RNG = np.random.default_rng(1)
X = {name: RNG.integers(4, V, (4, 5)) for name in ("source_ids", "target_ids")}
LABELS = RNG.integers(4, V, (4, 5))
SIZES = {"encoder_layers": 1, "decoder_layers": 1, "model_dim": 16, "intermediate_dim": 32, "num_heads": 2}
CONFIG = TransformerConfig(V, **SIZES)


def compiled(config=CONFIG, dtype=None):
    """A model with weights and an optimizer that are like no other."""
    model = transformer(config, dtype=dtype)
    model.set_weights([weight + 0.1 * RNG.normal(size=weight.shape) for weight in model.get_weights()])
    model.compile("adam", MaskedCrossentropy(), run_eagerly=True)
    return model


def predict(model):
    return np.asarray(model(X), "float32")


def checkpoints(folder, models):
    paths = [folder / f"{number}.weights.h5" for number in range(len(models))]
    for path, model in zip(paths, models, strict=True):
        model.save_weights(path)
    return paths


def assert_equal_weights(one, other):
    for a, b in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_average_of_one_checkpoint_many_times_is_that_checkpoint(tmp_path, dtype):
    """F16."""
    model = compiled(dtype=dtype)
    model.train_on_batch(X, LABELS)
    (path,) = checkpoints(tmp_path, [model])
    for count in (1, 3, 7):
        average = average_checkpoints([path] * count, CONFIG)
        assert {weight.dtype for weight in average.weights} == {"float32"}
        assert_equal_weights(average, model)


@pytest.mark.parametrize(
    "fields",
    [{}, {"tie_embeddings": "none", "normalize_first": True, "positions": "learned", "max_length": 6, "dropout": 0.5}],
    ids=["defaults", "more weights"],
)
def test_average_is_the_mean_of_every_weight(tmp_path, fields):
    """F16."""
    config = TransformerConfig(V, **{**SIZES, **fields})
    models = [compiled(config) for _ in range(3)]
    models[1].encoder_blocks[0].trainable = False
    average = average_checkpoints(checkpoints(tmp_path, models), config)
    for result, *weights in zip(average.get_weights(), *(model.get_weights() for model in models), strict=True):
        np.testing.assert_array_equal(result, np.mean([w.astype("float64") for w in weights], axis=0).astype("float32"))


def test_average_leaves_the_optimizers_state_out_and_goes_on_training(tmp_path):
    """F16."""
    models = [compiled(), compiled()]
    for model in models:
        model.train_on_batch(X, LABELS)
    paths = checkpoints(tmp_path, models)
    with h5py.File(paths[0]) as file:
        assert "optimizer" in file
    average = average_checkpoints(paths, CONFIG)
    assert not average.compiled
    average.save_weights(tmp_path / "average.weights.h5")
    with h5py.File(tmp_path / "average.weights.h5") as file:
        assert "optimizer" not in file

    before = average.get_weights()
    average.compile("adam", MaskedCrossentropy(), run_eagerly=True)
    average.train_on_batch(X, LABELS)
    assert int(average.optimizer.iterations) == 1
    assert any((a != b).any() for a, b in zip(average.get_weights(), before, strict=True))
    average.save(tmp_path / "average.keras")
    loaded = keras.models.load_model(tmp_path / "average.keras")
    assert_equal_weights(loaded, average)
    np.testing.assert_array_equal(predict(loaded), predict(average))


def test_files_that_cannot_be_averaged_are_named(tmp_path):
    """F16."""
    good, other = checkpoints(tmp_path, [compiled(), compiled(TransformerConfig(V + 1, **SIZES))])
    foreign, short = tmp_path / "foreign.weights.h5", tmp_path / "short.weights.h5"
    keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]).save_weights(foreign)
    with pytest.raises(ValueError, match="at least one checkpoint. Received: none"):
        average_checkpoints([], CONFIG)
    with pytest.raises(ValueError, match=r"(?s)1.weights.h5: .*weights with vocabulary_size=41 \(here 40\)"):
        average_checkpoints([good, other], CONFIG)
    with pytest.raises(ValueError, match="(?s)foreign.weights.h5: .*not the weights of a Transformer"):
        average_checkpoints([good, foreign], CONFIG)
    with pytest.raises(ValueError, match="missing.weights.h5: "):
        average_checkpoints([good, tmp_path / "missing.weights.h5"], CONFIG)
    content = good.read_bytes()
    for size in (0, 10, len(content) // 3, len(content) - 1):
        short.write_bytes(content[:size])
        with pytest.raises(ValueError, match="short.weights.h5: "):
            average_checkpoints([good, short], CONFIG)
    short.write_bytes(content[:2000] + bytes(len(content) - 2000))  # As a full disk may leave it.
    with pytest.raises(ValueError, match="short.weights.h5: "):
        load_weights(compiled(), short)


LOAD_WEIGHTS = """
import numpy as np
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.models import TransformerConfig, transformer
data = dict(np.load("data.npz"))
model = transformer(TransformerConfig(40, None, 1, 1, 16, 32, 2))
model.compile("adam", MaskedCrossentropy())
model.load_weights("model.weights.h5")
np.testing.assert_array_equal(model({name: data[name] for name in ("source_ids", "target_ids")}), data["logits"])
assert int(model.optimizer.iterations) == 1
print("equal")
"""


def test_saved_weights_load_in_a_fresh_process(tmp_path, run_python, monkeypatch):
    """F15: from a path relative to the working directory, which has no folder part."""
    model = compiled()
    model.train_on_batch(X, LABELS)
    monkeypatch.chdir(tmp_path)
    model.save_weights("model.weights.h5")
    assert [path.name for path in tmp_path.iterdir()] == ["model.weights.h5"]
    np.savez("data.npz", logits=predict(model), **X)
    assert run_python(LOAD_WEIGHTS) == "equal\n"


def test_failure_while_saving_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    """F15."""
    model, path = compiled(), tmp_path / "model.weights.h5"
    model.save_weights(path)
    before = path.read_bytes()

    def full(self, store):
        written.append(sorted(path.name for path in tmp_path.iterdir()))
        raise OSError("No space left on device")

    written = []
    monkeypatch.setattr(keras.layers.LayerNormalization, "save_own_variables", full)  # In the middle of the layers.
    for target in (path, tmp_path / "new.weights.h5"):
        with pytest.raises(OSError, match="No space left"):
            model.save_weights(target)
        assert len(written.pop()) == 2  # It had begun.
        assert [file.name for file in tmp_path.iterdir()] == ["model.weights.h5"] and path.read_bytes() == before


@pytest.mark.parametrize("answer", ["y", "n"])
def test_weights_are_not_overwritten_unasked(tmp_path, monkeypatch, answer):
    model, path = compiled(), tmp_path / "model.weights.h5"
    model.save_weights(path, overwrite=False)  # There is none to ask about.
    before = path.read_bytes()
    questions = []
    monkeypatch.setattr("builtins.input", lambda question: questions.append(question) or answer)
    model.set_weights([weight + 1 for weight in model.get_weights()])
    model.save_weights(path, overwrite=False)
    assert len(questions) == 1 and (path.read_bytes() == before) == (answer == "n")


def test_other_ways_to_save_weights_are_those_of_keras(tmp_path):
    with pytest.raises(ValueError, match="must end in `.weights.h5`"):
        compiled().save_weights(tmp_path / "model.h5")
    compiled().save_weights(tmp_path / "model.weights.json", max_shard_size=0.001)
    assert (tmp_path / "model.weights.json").exists()


SENTENCES = ["ein Hund läuft", "zwei Hunde laufen im Park", "a dog runs", "two dogs run in the park", "我爱水课"]


@pytest.fixture(scope="module")
def tokenizers():
    return [
        Tokenizer.train(SENTENCES[:3], vocabulary_size=290, model_type="bpe"),
        Tokenizer.train(SENTENCES[2:], vocabulary_size=295, model_type="bpe"),
    ]


@pytest.fixture(scope="module")
def presets(tokenizers, tmp_path_factory):
    """A folder with two presets, `shared` and `separate`, and their models."""
    folder = tmp_path_factory.mktemp("presets")
    models = {
        "shared": compiled(TransformerConfig(290, **SIZES)),
        "separate": compiled(TransformerConfig(290, 295, tie_embeddings="target", **SIZES), "mixed_bfloat16"),
    }
    for name, model in models.items():
        model.train_on_batch(X, LABELS)
        save_preset(folder / name / "made", model, *(tokenizers if name == "separate" else tokenizers[:1]))
    return folder, models


OPEN_PRESETS = """
import json
import numpy as np
from keras_transformer.checkpoints import load_preset
from keras_transformer.decoding import Translator
expected = json.load(open("expected.json"))
for name, translations in expected.items():
    model, source, target = load_preset(f"{name}/made")
    assert (source is target) == (name == "shared")
    found = Translator(model, source, target).translate(["ein Hund", "我爱"], beam_size=1)
    assert [one.text for one in found] == translations, name
    data = dict(np.load(f"{name}.npz"))
    logits = model({key: data[key] for key in ("source_ids", "target_ids")})
    np.testing.assert_allclose(logits, data["logits"], atol=1e-6)
print("equal")
"""


def test_preset_translates_the_same_in_a_fresh_process(presets, tokenizers, tmp_path, run_python):
    folder, models = presets
    expected = {}
    for name, model in models.items():
        full = transformer(model.config, dtype="float32")
        full.set_weights(model.get_weights())
        sides = tokenizers if name == "separate" else tokenizers[:1]
        expected[name] = [one.text for one in Translator(full, *sides).translate(["ein Hund", "我爱"], beam_size=1)]
        np.savez(tmp_path / f"{name}.npz", logits=predict(full), **X)
        shutil.copytree(folder / name, tmp_path / name)
    (tmp_path / "expected.json").write_text(json.dumps(expected))
    assert run_python(OPEN_PRESETS) == "equal\n"


def test_preset_holds_weights_alone_and_opens_in_the_precision_asked_for(presets):
    folder, models = presets
    path = folder / "shared" / "made"
    assert sorted(file.name for file in path.iterdir()) == ["config.json", "model.weights.h5", "tokenizer.model"]
    assert sorted(file.name for file in (folder / "separate" / "made").glob("*.model")) == [
        "source.model",
        "target.model",
    ]
    with h5py.File(path / "model.weights.h5") as file:
        assert "optimizer" not in file
    models["shared"].save_weights(folder / "whole.weights.h5")
    assert (path / "model.weights.h5").stat().st_size < 0.7 * (folder / "whole.weights.h5").stat().st_size
    model, *_ = load_preset(path, dtype="mixed_bfloat16")
    assert model.dtype_policy.name == "mixed_bfloat16" and not model.compiled
    assert_equal_weights(model, models["shared"])


@pytest.mark.parametrize(
    ("part", "content"),
    [
        *(("config.json", content) for content in (None, "", "[]", "{}", '{"model": 5}', '{"model": {"layers": 3}}')),
        ("model.weights.h5", None),
        ("model.weights.h5", "broken"),
        ("source.model", None),
        ("source.model", "broken"),
        ("target.model", None),
    ],
)
def test_missing_and_broken_parts_of_a_preset_are_named(presets, tmp_path, part, content):
    folder = shutil.copytree(presets[0] / "separate" / "made", tmp_path / "preset")
    (folder / part).unlink()
    if content is not None:
        (folder / part).write_text(content)
    with pytest.raises(ValueError, match=part):
        load_preset(folder)


def test_preset_saved_over_another_leaves_no_tokenizer_of_it(presets, tokenizers, tmp_path):
    models = presets[1]
    save_preset(tmp_path, models["separate"], *tokenizers)
    save_preset(tmp_path, models["shared"], tokenizers[0], tokenizers[0])
    _, source, target = load_preset(tmp_path)
    assert source is target and source.checksum == tokenizers[0].checksum
    save_preset(tmp_path, models["separate"], *tokenizers)
    _, *sides = load_preset(tmp_path)
    assert [side.checksum for side in sides] == [side.checksum for side in tokenizers]
