import re
import sys
from unittest.mock import Mock

import numpy as np
import pytest

from keras_transformer.data.tensorflow_datasets import TensorFlowDatasetsCorpus

try:
    import tensorflow_datasets as tfds
except Exception as error:
    pytest.skip(f"TensorFlow Datasets cannot be imported: {error}", allow_module_level=True)

ROWS = [
    ("Satz 1 — 我爱水课", "sentence 1"),
    (" Satz 2\u2028", "sentence 2"),
    (b"caf\xe9", "coffee"),
    ("", "blank"),
    ("Satz 1 — 我爱水课", "sentence 1"),
    ("nothing", b"a\0b"),
    ("x" * 60, "long"),
    ("Satz 8", "sentence 8"),
]
NAME = "house_translate/de-en"


class HouseTranslate(tfds.core.GeneratorBasedBuilder):
    """A translation data set of our own, which TensorFlow Datasets knows by its class."""

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS = [tfds.core.BuilderConfig(name="de-en"), tfds.core.BuilderConfig(name="zh-en")]  # noqa: RUF012
    failure = None

    def _info(self):
        features = {"de": tfds.features.Text(), "en": tfds.features.Text(), "length": tfds.features.Scalar(np.int64)}
        return tfds.core.DatasetInfo(
            builder=self, features=tfds.features.FeaturesDict(features), disable_shuffling=True
        )

    def _split_generators(self, manager):
        if self.failure is not None:
            raise self.failure
        return {"train": self._generate_examples(ROWS), "test": self._generate_examples(ROWS[:2])}

    def _generate_examples(self, rows):
        for number, (source, target) in enumerate(rows):
            yield number, {"de": source, "en": target, "length": len(source)}


# TensorFlow Datasets looks for the file of a class inside its top package, for which it needs importlib_resources.
HouseTranslate.__module__ = "house_translate"


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    HouseTranslate(config="de-en", data_dir=folder).download_and_prepare()
    return folder


def test_pairs_are_those_of_the_data_set_in_order_and_checked(data_dir):
    corpus = TensorFlowDatasetsCorpus(NAME, "train", "de", "en", data_dir, bad_lines="skip", max_bytes=50)
    kept = [("Satz 1 — 我爱水课", "sentence 1"), ("Satz 2", "sentence 2"), ("Satz 8", "sentence 8")]
    assert list(corpus) == kept == list(corpus)
    counts = {cause: count for cause, count in corpus.report.dropped.items() if count}
    assert counts == {"invalid_utf8": 1, "nul": 1, "one_sided_blank": 1, "too_long": 1, "duplicate": 1}
    assert corpus.report.read == 8 and corpus.report.kept == 3
    assert corpus.report.places["invalid_utf8"] == [f"{NAME}/train/de:3"]
    assert corpus.report.places["nul"] == [f"{NAME}/train/en:6"]


def test_row_that_is_no_text_is_an_error_with_its_place(data_dir):
    with pytest.raises(ValueError, match=rf"{NAME}/train/de:3: .*valid UTF-8.*bad_lines="):
        list(TensorFlowDatasetsCorpus(NAME, "train", "de", "en", data_dir))
    with pytest.raises(ValueError, match=rf"{NAME}/train\[3:\]/en:3: .*NUL.*bad_lines="):
        list(TensorFlowDatasetsCorpus(NAME, "train[3:]", "en", "de", data_dir))


def test_languages_and_parts_of_splits_are_as_asked_for(data_dir):
    assert list(TensorFlowDatasetsCorpus(NAME, "test", "en", "de", str(data_dir)))[1] == ("sentence 2", "Satz 2")
    assert list(TensorFlowDatasetsCorpus(NAME, "train[7:]", "de", "en", data_dir)) == [("Satz 8", "sentence 8")]
    assert len(list(TensorFlowDatasetsCorpus(NAME, "test+test", "de", "en", data_dir, drop_duplicates=False))) == 4


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("house_translat/de-en", "Received: .*'house_translat/de-en'.*not found"),
        ("wmt14_translat", r"Did you mean 'wmt14_translate'\? Received: .*'wmt14_translat'"),
        ("wmt14_translate/en-de", r"has cs-en, de-en, .*\. Received: .*en-de not found with version None\.\)"),
        (f"{NAME}:7.0.0", "Received: .*only: 1.0.0"),
        ("two words", "Received: .*'two words'"),
        (None, "Received: name=None"),
    ],
)
def test_unknown_data_set_is_refused_with_the_nearest_name(data_dir, name, message):
    with pytest.raises(ValueError, match=message):
        TensorFlowDatasetsCorpus(name, "train", "de", "en", data_dir)


@pytest.mark.parametrize(("source", "target"), [("de", "fr"), ("zh", "en"), ("de", "length"), ("de", "de"), (None, 5)])
def test_unknown_language_is_refused_with_the_known_ones(data_dir, source, target):
    with pytest.raises(ValueError, match=rf"two of .*{NAME}.*: 'de', 'en'. Received: {source!r} and {target!r}"):
        TensorFlowDatasetsCorpus(NAME, "train", source, target, data_dir)


def test_data_set_without_texts_is_refused(tmp_path):
    with pytest.raises(ValueError, match="mnist.*it has none. Received: 'de' and 'en'"):
        TensorFlowDatasetsCorpus("mnist", "train", "de", "en", tmp_path)


@pytest.mark.parametrize("split", ["tain", "train[:x]", "train+tain", "train[90:]", "", None])
def test_unknown_split_is_refused_with_the_known_ones(data_dir, split):
    with pytest.raises(ValueError, match=rf"'train', 'test', or .*Received: split={re.escape(repr(split))} \(.+\)$"):
        TensorFlowDatasetsCorpus(NAME, split, "de", "en", data_dir)


def test_data_that_is_not_there_is_refused_or_prepared(tmp_path):
    with pytest.raises(ValueError, match=r"de-en must lie in `data_dir`; download=True.*Received: .*1\.0\.0"):
        TensorFlowDatasetsCorpus("wmt14_translate/de-en", "train", "de", "en", tmp_path)
    assert len(list(TensorFlowDatasetsCorpus(NAME, "test", "de", "en", tmp_path, download=True))) == 2


def test_failed_download_is_named_and_leaves_nothing_that_is_taken_for_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(HouseTranslate, "failure", ConnectionError("house.example does not answer"))
    for download, message in (
        (True, "Could not download and prepare .*Received: house.example"),
        (False, "must lie in"),
    ):
        with pytest.raises(ValueError, match=rf"(?s){message}"):
            TensorFlowDatasetsCorpus(NAME, "test", "de", "en", tmp_path, download=download)


def test_broken_file_is_an_error_that_names_the_data_set(tmp_path):
    corpus = TensorFlowDatasetsCorpus(NAME, "test", "de", "en", tmp_path, download=True)
    file = next(tmp_path.rglob("*test.tfrecord*"))
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(ValueError, match=f"Could not read {NAME} in .*{tmp_path.name}"):
        list(corpus)


def test_missing_packages_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(HouseTranslate, "failure", ModuleNotFoundError("No module named 'apache_beam'"))
    with pytest.raises(ImportError, match="`pip install` it. Received: .*apache_beam"):
        TensorFlowDatasetsCorpus(NAME, "test", "de", "en", tmp_path, download=True)
    with monkeypatch.context() as patch, pytest.raises(ImportError, match="is not installed. Received: No .*'hub'"):
        patch.setattr(tfds, "builder", Mock(side_effect=ModuleNotFoundError("No module named 'hub'")))
        TensorFlowDatasetsCorpus(NAME, "test", "de", "en", tmp_path)
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(ImportError, match="`pip install tensorflow-datasets"):
        TensorFlowDatasetsCorpus(NAME, "test", "de", "en", tmp_path)


def test_bad_options_are_refused(data_dir):
    for name, value in (("bad_lines", "ignore"), ("max_bytes", 0), ("drop_duplicates", "yes"), ("download", 1)):
        with pytest.raises(ValueError, match=f"`{name}`.*Received"):
            TensorFlowDatasetsCorpus(NAME, "test", "de", "en", data_dir, **{name: value})
