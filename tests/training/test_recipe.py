import dataclasses
from pathlib import Path

import pytest
import yaml

from keras_transformer.models import TransformerConfig
from keras_transformer.training import RECIPES, load_recipe
from keras_transformer.training.annotated import annotated_recipe
from keras_transformer.training.recipe import Corpus, Recipe

SMALLEST = {
    "data": {
        "source_language": "zh",
        "target_language": "en",
        "train": [{"source": "train.zh", "target": "train.en"}],
        "validation": [{"phrasebook": "zh", "split": "validation"}],
    }
}


def write(path, options):
    path.write_text(yaml.safe_dump(options, allow_unicode=True), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_of_the_package_loads_and_builds_a_config(name):
    recipe = load_recipe(name)
    config = recipe.transformer_config(recipe.tokenizer.vocabulary_size, recipe.tokenizer.vocabulary_size)
    assert config.vocabulary_size == recipe.tokenizer.vocabulary_size


def test_wmt14_recipes_are_the_papers():
    """Sections 5.1 to 5.4, 6.1 and table 3."""
    for name, steps, average, dropout, width in (
        ("wmt14-base", 100_000, 5, 0.1, 512),
        ("wmt14-big", 300_000, 20, 0.3, 1024),
    ):
        recipe = load_recipe(name)
        training, optimizer = recipe.training, recipe.optimizer
        config = recipe.transformer_config(37_000, 37_000)
        assert recipe.tokenizer.vocabulary_size == 37_000
        assert recipe.tokenizer.shared
        assert training.epochs * training.steps_per_epoch == steps
        assert (training.batch_tokens, training.label_smoothing, training.average_last) == (25_000, 0.1, average)
        assert (optimizer.schedule, optimizer.scale, optimizer.warmup_steps) == ("noam", 1.0, 4000)
        assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.98, 1e-9)
        assert (config.dropout, config.model_dim, config.intermediate_dim) == (dropout, width, 4 * width)
        assert (config.encoder_layers, config.decoder_layers, config.num_heads) == (6, 6, width // 64)
        assert not config.normalize_first


def test_annotated_recipe_has_every_option_with_its_default():
    text = annotated_recipe()
    options = yaml.safe_load(text)
    recipe = Recipe.model_validate(options)
    for section in ("data", "tokenizer", "optimizer", "training"):
        fields = type(getattr(recipe, section)).model_fields
        assert list(options[section]) == list(fields)
        for name, field in fields.items():
            assert field.description, name
            assert f"# {field.description}" in text
            if not field.is_required():
                assert getattr(getattr(recipe, section), name) == field.default, name
    for name in Corpus.model_fields:
        assert f"{name}:" in text
    for field in dataclasses.fields(TransformerConfig):
        assert field.name.endswith("vocabulary_size") or f"# {field.name}: " in text


def test_annotated_recipe_in_the_repository_is_the_one_that_the_command_prints():
    path = Path(__file__).parents[2] / "training" / "annotated_recipe.yaml"  # keras-transformer recipe > it
    assert path.read_text(encoding="utf-8") == annotated_recipe()


def test_file_of_the_least_options_is_a_recipe_with_the_defaults(tmp_path):
    recipe = load_recipe(write(tmp_path / "mine.yaml", SMALLEST))
    assert recipe.data.train[0].target == "train.en"
    assert recipe.training.label_smoothing == 0.1


def test_overrides_set_options_by_their_dotted_names():
    recipe = load_recipe("demo", {"training.epochs": 3, "model.num_heads": 2, "optimizer.peak_learning_rate": "1e-3"})
    assert recipe.training.epochs == 3
    assert recipe.transformer_config(10, 10).num_heads == 2
    assert recipe.optimizer.peak_learning_rate == 1e-3
    with pytest.raises(ValueError, match=r"training.epochs.last is no option.*Received: training.epochs.last=3"):
        load_recipe("demo", {"training.epochs.last": 3})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("training.epoch", 3, r"training\.epoch is no option\. Did you mean epochs\? Received: training\.epoch=3"),
        ("trainin", {}, r"trainin is no option\. Did you mean training\?"),
        ("optimizer.warmup", 3, r"optimizer\.warmup is no option\. Did you mean warmup_steps\?"),
        ("model.num_head", 3, r"no field 'num_head'\. Did you mean 'num_heads'\? Received: num_head=3"),
        ("model.preset", "tinny", r"model\.preset must be one of .*Did you mean tiny\? Received: 'tinny'"),
        ("model.vocabulary_size", 9, r"model\.vocabulary_size follows from tokenizer\.vocabulary_size"),
        ("training.epochs", True, r"training\.epochs: .*takes no true or false.* Received: True"),
        ("training.epochs", 0, r"training\.epochs: .*greater than or equal to 1\. Received: 0"),
        ("training.epochs", "many", r"training\.epochs: .*integer.*Received: 'many'"),
        ("optimizer.peak_learning_rate", float("nan"), r"optimizer\.peak_learning_rate: .*Received: nan"),
        ("training.precision", "float8", r"training\.precision: .*mixed_bfloat16.*Received: 'float8'"),
        ("tokenizer.model_type", "wordpiece", r"tokenizer\.model_type: .*'bpe'.*Received: 'wordpiece'"),
        ("data.train", [{"sourc": "a"}], r"data\.train\.0\.sourc is no option\. Did you mean source\?"),
        ("data.train", [{"source": "a", "phrasebook": "zh"}], r"data\.train\.0: needs exactly one of"),
        ("data.train", [], r"data\.train: .*at least 1"),
        ("data.train", None, r"data\.train: .*Received: None"),
    ],
)
def test_wrong_options_are_named_with_what_was_expected(tmp_path, key, value, message):
    with pytest.raises(ValueError, match=message):
        load_recipe(write(tmp_path / "mine.yaml", SMALLEST), {key: value})


def test_capitals_are_not_added_for_a_tokenizer_that_lowers_them():
    overrides = {"data.case_augmentation": 0.1, "tokenizer.normalization": "lower"}
    with pytest.raises(ValueError, match=r"case_augmentation adds nothing.*Received: 0\.1 with lower"):
        load_recipe("multi30k-en-de", overrides)


def test_several_wrong_options_are_named_at_once(tmp_path):
    with pytest.raises(ValueError, match=r"(?s)mine\.yaml.*optimizer\.beta .*training\.epoch ") as raised:
        load_recipe(write(tmp_path / "mine.yaml", SMALLEST), {"training.epoch": 1, "optimizer.beta": 1})
    assert len(str(raised.value).splitlines()) == 3


def test_recipes_that_are_none_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"Did you mean demo\? Received: demoo"):
        load_recipe("demoo")
    with pytest.raises(ValueError, match=r"Could not read the recipe .*absent\.yaml"):
        load_recipe(tmp_path / "absent.yaml")
    for content, message in (
        (b"data: [", "is no YAML.*line"),
        (b"- 1\n", "sections of options.*list"),
        (b"", "sections of options.*None"),
        (b"data: \xff", "Could not read"),
        (b"data: !!python/object/apply:os.system [ls]", "is no YAML"),
    ):
        (tmp_path / "bad.yaml").write_bytes(content)
        with pytest.raises(ValueError, match=f"(?s){message}"):
            load_recipe(tmp_path / "bad.yaml")
