"""From the corpora that a recipe names to sentence pairs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator

from keras_transformer.data import DataReport, ParallelCorpus
from keras_transformer.training.recipe import Corpus, Data


class RecipeCorpora:
    """The sentence pairs of the corpora in one list of a recipe, one corpus after the other.

    Args:
        corpora: Entries of `train`, `validation` or `test`.
        options: The section they stand in.
        folder: Where local copies of public data sets lie; None to download them.

    Raises:
        ValueError: If a corpus is not there or not as it should be; the message names it.
    """

    def __init__(self, corpora: list[Corpus], options: Data, folder: str | os.PathLike | None = None):
        self._parts = [(_title(corpus), corpus.swap, _open(corpus, options, folder)) for corpus in corpora]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for _, swap, pairs in self._parts:
            for source, target in pairs:
                yield (target, source) if swap else (source, target)

    @property
    def reports(self) -> dict[str, DataReport]:
        """What the newest iteration counted, corpus by corpus."""
        return {title: pairs.report for title, _, pairs in self._parts}

    def reports_as_dict(self) -> dict:
        """The same, ready for JSON."""
        return {title: dataclasses.asdict(report) for title, report in self.reports.items()}


class _PhrasebookCorpus:
    def __init__(self, language, split):
        from keras_transformer.data.phrasebook import phrasebook

        self._pairs = phrasebook(language, split)
        self.report = DataReport(read=len(self._pairs), kept=len(self._pairs))

    def __iter__(self):
        return iter(self._pairs)


def _title(corpus):
    if corpus.source:
        return f"{corpus.source} {corpus.target or ''}".strip()
    name = corpus.dataset or corpus.tensorflow_dataset or f"phrasebook {corpus.phrasebook}"
    return f"{name} {corpus.split}"


def _open(corpus, options, folder):
    checks = {
        "bad_lines": options.bad_lines,
        "max_bytes": options.max_bytes,
        "drop_duplicates": options.drop_duplicates,
    }
    languages = (options.source_language, options.target_language)
    source, target = reversed(languages) if corpus.swap else languages
    if corpus.phrasebook:
        return _PhrasebookCorpus(corpus.phrasebook, corpus.split)
    if corpus.dataset:
        from keras_transformer.data.public import dataset_files

        splits = dataset_files(corpus.dataset, folder)
        if corpus.split not in splits:
            raise ValueError(f"{corpus.dataset} has the splits {', '.join(splits)}. Received: split={corpus.split}")
        return ParallelCorpus(**splits[corpus.split], **checks)
    if corpus.tensorflow_dataset:
        from keras_transformer.data.tensorflow_datasets import TensorFlowDatasetsCorpus

        return TensorFlowDatasetsCorpus(
            corpus.tensorflow_dataset, corpus.split, source, target, data_dir=folder, download=True, **checks
        )
    return ParallelCorpus(corpus.source, corpus.target, columns=corpus.columns, **checks)
