"""Sentence pairs of the translation data sets in TensorFlow Datasets."""

from __future__ import annotations

import difflib
import os

import tensorflow as tf

from keras_transformer._checks import check_bool
from keras_transformer.data.checked_pairs import CheckedPairs


class TensorFlowDatasetsCorpus(CheckedPairs):
    """Sentence pairs of a translation data set in TensorFlow Datasets, checked as those of a `ParallelCorpus` are.

    `TensorFlowDatasetsCorpus("wmt14_translate/de-en", "train", "de", "en", download=True)` reads the German and English
    sentences of WMT 2014, and downloads them the first time. Any set whose features include two texts will do.

    Needs `pip install tensorflow-datasets importlib_resources`; the latter is needed to prepare data that was
    downloaded, not to read it. Iterating reads from disk anew, pair by pair, in the order in which the data is stored.
    Places in the report count from 1 in the split: `wmt14_translate/de-en/train/de:17`.

    Args:
        name: Name of the data set, with its config where it has several, and maybe its version.
        split: Name of a split, or a part of one, such as `"train[:10%]"`.
        source_language: Feature with the source side; in a translation set a language, such as `"de"`.
        target_language: Feature with the target side.
        data_dir: Folder of the data sets. That of TensorFlow Datasets, `~/tensorflow_datasets`, if None.
        download: Whether to download and prepare a data set that does not lie in `data_dir`.
        bad_lines: `"raise"` or `"skip"`: what to do about a sentence that is no text.
        max_bytes: Pairs with a longer side are left out.
        drop_duplicates: Whether to leave out a pair that stood earlier. Takes about 100 bytes a pair.

    Attributes:
        report: The `DataReport` of the newest iteration.

    Raises:
        ImportError: If TensorFlow Datasets, or a package that it needs, cannot be imported.
        ValueError: Now, if there is no such data set, split or language, or the data is not there or could not be
            downloaded; when iterating, at a sentence that is no text, or if the data cannot be read.
    """

    def __init__(
        self,
        name: str,
        split: str,
        source_language: str,
        target_language: str,
        data_dir: str | os.PathLike | None = None,
        download: bool = False,
        bad_lines: str = "raise",
        max_bytes: int = 10_000,
        drop_duplicates: bool = True,
    ):
        super().__init__(bad_lines, max_bytes, drop_duplicates)
        check_bool("download", download)
        tfds = _import_tensorflow_datasets()
        self.name, self.split, self.languages = name, split, (source_language, target_language)
        self._builder = _builder(tfds, name, None if data_dir is None else os.fspath(data_dir))
        _check_languages(self._builder, *self.languages)
        if not self._builder.is_prepared():
            _prepare(self._builder, name, download)
        try:
            self._builder.info.splits[split]
        except Exception as error:  # The parser of splits raises what it likes for what is not text.
            known, reason = ", ".join(map(repr, self._builder.info.splits)), str(error).partition("\n")[0]
            raise ValueError(
                f'`split` must be one of {known}, or a part such as "train[:10%]". Received: split={split!r} ({reason})'
            ) from error

    def _rows(self):
        tfds = _import_tensorflow_datasets()
        dataset = self._builder.as_dataset(
            split=self.split,
            # Only these two features are decoded: a set may have a hundred languages.
            decoders=tfds.decode.PartialDecoding(dict.fromkeys(self.languages, True)),
            # One file after the other, so that the number of a pair says where it is; and nothing is kept in memory.
            read_config=tfds.ReadConfig(interleave_cycle_length=1, try_autocache=False),
        )
        try:
            for row in tfds.as_numpy(dataset):
                yield [row[language] for language in self.languages]
        except tf.errors.OpError as error:
            raise ValueError(f"Could not read {self.name} in {self._builder.data_dir}: {error.message}") from error

    def _place(self, number, side):
        return f"{self.name}/{self.split}/{self.languages[side]}:{number}"


def _import_tensorflow_datasets():
    """The library, imported when it is needed: the rest of the package does without."""
    try:
        import tensorflow_datasets
    except Exception as error:  # Its messages were compiled for some versions of protobuf; others raise what they like.
        raise ImportError(
            "TensorFlowDatasetsCorpus needs TensorFlow Datasets: `pip install tensorflow-datasets importlib_resources`."
            f" Received: {error}"
        ) from error
    return tensorflow_datasets


def _builder(tfds, name, data_dir):
    try:
        return tfds.builder(name, data_dir=data_dir)
    except ImportError as error:
        raise ImportError(f"{name} needs a package that is not installed. Received: {error}") from error
    except Exception as error:  # ValueError, AssertionError or TypeError, by what is wrong with the name.
        reason = str(error).partition("\n")[0].partition(" Here are")[0]  # It goes on with lists of names.
        raise ValueError(
            "`name` must be that of a data set in TensorFlow Datasets, such as 'wmt14_translate/de-en'."
            f"{_hint(tfds, name)} Received: name={name!r} ({reason})"
        ) from error


def _hint(tfds, name):
    data_set = str(name).partition("/")[0]
    known = tfds.list_builders(with_community_datasets=False)
    if data_set in known:
        configs = list(tfds.builder_cls(data_set).builder_configs)
        return f" {data_set} has {', '.join(configs[:20])}{', ...' if len(configs) > 20 else ''}." if configs else ""
    near = difflib.get_close_matches(data_set, known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _check_languages(builder, source, target):
    features = builder.info.features.get_tensor_info()
    texts = [
        name
        for name, feature in (features.items() if isinstance(features, dict) else ())
        if getattr(feature, "shape", None) == () and feature.tf_dtype == tf.string
    ]
    if source not in texts or target not in texts or source == target:
        raise ValueError(
            f"`source_language` and `target_language` must be two of the texts of {builder.info.full_name}: "
            f"{', '.join(map(repr, texts)) or 'it has none'}. Received: {source!r} and {target!r}"
        )


def _prepare(builder, name, download):
    if not download:
        raise ValueError(
            f"The data of {name} must lie in `data_dir`; download=True downloads and prepares it. "
            f"Received: {builder.data_dir}, where it is not"
        )
    try:
        builder.download_and_prepare()
    except ImportError as error:
        raise ImportError(
            f"TensorFlow Datasets needs another package to prepare {name}: `pip install` it. Received: {error}"
        ) from error
    except Exception as error:  # Each data set has a program of its own to download it.
        raise ValueError(f"Could not download and prepare {name} in {builder.data_dir}. Received: {error}") from error
