"""Public data sets by name: their files, looked for in a folder or downloaded, and known by their sha256 sums."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import keras

from keras_transformer._checks import check_choice


@dataclasses.dataclass(frozen=True)
class PublicDataset:
    """A public set of parallel text, whose files are known by their sums.

    Attributes:
        name: What `dataset_files` calls it.
        languages: Its two languages, in the order of its files or columns.
        licence: What it may be used for, and whom to name.
        folder: Name of its folder, in the cache and in a folder of several sets.
        splits: The files of each split with their sha256 sums: one for each language, or one that is tab-separated.
        home: Address of the folder that the files are downloaded from, or None for a set that has none.
    """

    name: str
    languages: tuple[str, str]
    licence: str
    folder: str
    splits: dict[str, dict[str, str]]
    home: str | None = None

    @property
    def sums(self) -> dict[str, str]:
        """All files with their sha256 sums."""
        return {file: sha256 for files in self.splits.values() for file, sha256 in files.items()}


_MULTI30K = PublicDataset(
    name="multi30k",
    languages=("en", "de"),
    licence="Research and education use only: derived from Flickr30k. Multi30k task 1, github.com/multi30k/dataset",
    folder="multi30k",
    splits={
        "train": {
            "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
            "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
        },
        "validation": {
            "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
            "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
        },
        "test_2016_flickr": {
            "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
            "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
        },
    },
    home="https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw",
)
_TATOEBA = PublicDataset(
    name="tatoeba-cmn-eng",
    languages=("eng", "cmn"),
    licence="CC BY 2.0 FR, attribution: tatoeba.org; the third column has the numbers of the sentences there",
    folder="tatoeba",
    splits={
        "train": {"cmn-eng.train.tsv.gz": "27f174bb46ba9fd060089037be7389b8d6df1a04971161cc30fba0560dbc4fe1"},
        "validation": {"cmn-eng.val.tsv.gz": "db42b9c4958a19716ab32deb9460fb27bdfcfac46e5780a1aaabda2e2e8865fc"},
    },
)
PUBLIC_DATASETS = {dataset.name: dataset for dataset in (_MULTI30K, _TATOEBA)}


def dataset_files(
    name: str,
    folder: str | os.PathLike | None = None,
    source_language: str | None = None,
    cache_dir: str | os.PathLike | None = None,
) -> dict[str, dict[str, Any]]:
    """The files of a public data set, split by split, as arguments for `ParallelCorpus`.

    `ParallelCorpus(**dataset_files("multi30k")["train"])` downloads the set, unless it lies in the cache, and reads its
    training pairs. `PUBLIC_DATASETS` has the sets with their languages, splits and licences:

    - `multi30k`: captions of images in English and German; `train`, `validation`, `test_2016_flickr` with 29,000,
      1,014 and 1,000 pairs. Research and education use only, for it is derived from Flickr30k.
    - `tatoeba-cmn-eng`: sentences in English and Mandarin; `train` and `validation` with 27,038 and 833 pairs.
      CC BY 2.0 FR, attribution: tatoeba.org. It has no public home: `folder` must name where it lies.

    Args:
        name: Name of the set.
        folder: The folder that has the files, directly or in its sub-folder `multi30k` or `tatoeba`, which comes
            first. None downloads what the cache lacks.
        source_language: The language to translate from. The first of the set's languages if None.
        cache_dir: Folder of the cache; Keras' own, `$KERAS_HOME` or `~/.keras`, if None. Files go to its sub-folder
            `keras_transformer`.

    Returns:
        The arguments of `ParallelCorpus` by the name of the split: `source` and `target`, or `source` and `columns`.

    Raises:
        ValueError: If there is no such set or language, a file is missing, could not be downloaded, or has another
            sha256 sum.

    Example:
        ```python
        from keras_transformer.data.public import PUBLIC_DATASETS

        for dataset in PUBLIC_DATASETS.values():
            print(dataset.name, dataset.languages, list(dataset.splits))
            #> multi30k ('en', 'de') ['train', 'validation', 'test_2016_flickr']
            #> tatoeba-cmn-eng ('eng', 'cmn') ['train', 'validation']
        ```
    """
    dataset = _dataset(name)
    languages = dataset.languages
    source = check_choice("source_language", languages[0] if source_language is None else source_language, languages)
    order = (0, 1) if source == languages[0] else (1, 0)
    paths = _download(dataset, cache_dir) if folder is None else _find(dataset, Path(folder))
    return {split: _arguments([paths[file] for file in files], order) for split, files in dataset.splits.items()}


def _dataset(name):
    if name not in PUBLIC_DATASETS:
        near = difflib.get_close_matches(str(name), PUBLIC_DATASETS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"`name` must be one of {', '.join(map(repr, PUBLIC_DATASETS))}.{hint} Received: name={name!r}"
        )
    return PUBLIC_DATASETS[name]


def _arguments(paths, order):
    if len(paths) == 1:
        return {"source": paths[0], "columns": order}
    return {"source": paths[order[0]], "target": paths[order[1]]}


def _find(dataset, folder):
    """The paths of the files in the user's folder."""
    places = [folder / dataset.folder, folder]
    paths = {}
    for file in dataset.sums:
        found = [place / file for place in places if (place / file).is_file()]
        paths[file] = found[0] if found else None
    missing = [file for file, path in paths.items() if path is None]
    if missing:
        state = "" if folder.is_dir() else ", which is no folder"
        raise ValueError(
            f"The files of {dataset.name} must lie in `folder` (`--data PATH`), or in {dataset.folder} there. "
            f"Not found: {', '.join(missing)}. Received: {folder}{state}"
        )
    for file, path in paths.items():
        _check_sum(path, dataset.sums[file])
    return paths


def _download(dataset, cache_dir):
    """The paths of the files in the cache, downloaded if need be."""
    if dataset.home is None:
        files = "".join(f"\n  {file}  sha256 {sha256}" for file, sha256 in dataset.sums.items())
        raise ValueError(
            f"{dataset.name} has no public home to download it from: `folder` (`--data PATH`) must name where these "
            f"files lie:{files}\nReceived: folder=None"
        )
    return {file: _download_file(dataset, file, cache_dir) for file in dataset.sums}


def _download_file(dataset, file, cache_dir):
    url, sha256 = f"{dataset.home}/{file}", dataset.sums[file]
    fetch = functools.partial(
        keras.utils.get_file, file, url, cache_subdir=f"keras_transformer/{dataset.folder}", cache_dir=cache_dir
    )
    advice = f"`folder` (`--data PATH`) takes a copy that you have of {file}."
    try:
        if cache_dir is not None:  # Keras would take another folder without a word if this one were not there.
            Path(cache_dir).expanduser().mkdir(parents=True, exist_ok=True)
        with contextlib.redirect_stdout(sys.stderr):  # Keras says that it downloads.
            try:
                # Checks the sum of a file in the cache too: what a broken run left there is downloaded anew.
                return Path(fetch(file_hash=sha256, hash_algorithm="sha256"))
            except ValueError:  # The sum is wrong. Keras has left the file in the cache, and does not tell its sum.
                path = Path(fetch())
    except Exception as error:  # Keras raises a bare Exception for an address that does not answer.
        raise ValueError(f"Could not download {url}: {advice} Received: {error}") from error
    _check_sum(path, sha256, f" It was downloaded from {url}. {advice}")
    return path


def _check_sum(path, sha256, origin=""):
    try:
        with open(path, "rb") as file:
            received = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ValueError(f"Could not read {path}: {error}") from error
    if received != sha256:
        raise ValueError(
            f"The sha256 sum of {path} must be {sha256}: this is another file, or a part of it.{origin} "
            f"Received: {received}"
        )
