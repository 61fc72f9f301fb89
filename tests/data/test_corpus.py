import gzip
import json

import pytest

from keras_transformer.data import ParallelCorpus

PAIRS = [(f"Satz {i} — 我爱水课\u2028\x85\x0b", f"sentence {i}") for i in range(20)]


def write(path, sentences, end="\n", bom=False, compress=False):
    data = (b"\xef\xbb\xbf" if bom else b"") + "".join(sentence + end for sentence in sentences).encode()
    path.write_bytes(gzip.compress(data) if compress else data)
    return path


def files(folder, pairs=PAIRS, **options):
    return [write(folder / f"text.{side}", [pair[side] for pair in pairs], **options) for side in (0, 1)]


@pytest.mark.parametrize(
    "options", [{}, {"end": "\r\n"}, {"bom": True}, {"compress": True}, {"end": "\r\n", "bom": True, "compress": True}]
)
def test_line_ends_byte_order_mark_and_compression_make_no_difference(tmp_path, options):
    """F20: and no other character ends a line."""
    corpus = ParallelCorpus(*files(tmp_path, **options))
    assert list(corpus) == [(source.strip(), target) for source, target in PAIRS] == list(corpus)
    assert corpus.report.read == corpus.report.kept == 20


def test_missing_final_newline_is_no_difference(tmp_path):
    source, target = files(tmp_path)
    target.write_bytes(target.read_bytes()[:-1])
    assert len(list(ParallelCorpus(source, target))) == 20


def test_lines_that_end_in_cr_alone_are_refused(tmp_path):
    """F20."""
    with pytest.raises(ValueError, match=r"LF or CRLF. Received: .*text\.0"):
        ParallelCorpus(*files(tmp_path, end="\r"))


@pytest.mark.parametrize("change", [lambda lines: lines[:-1], lambda lines: [*lines, ""]])
def test_unequal_numbers_of_lines_are_refused_with_both_counts_and_names(tmp_path, change):
    """F18: before the first pair."""
    source, target = files(tmp_path)
    lines = change([pair[1] for pair in PAIRS])
    write(target, lines)
    with pytest.raises(ValueError, match=rf"text\.0 with 20 lines and .*text\.1 with {len(lines)}"):
        ParallelCorpus(source, target)


BAD = {2: (b"caf\xe9", "invalid_utf8"), 3: (b"a\0b", "nul"), 4: (b"\xed\xa0\x80", "invalid_utf8")}


@pytest.mark.parametrize("side", [0, 1])
def test_bad_line_is_an_error_with_file_and_number_or_left_out_and_counted(tmp_path, side):
    """F19."""
    paths = files(tmp_path)
    lines = paths[side].read_bytes().split(b"\n")
    for index, (line, _) in BAD.items():
        lines[index] = line
    paths[side].write_bytes(b"\n".join(lines))
    with pytest.raises(ValueError, match=rf"text\.{side}:3: the line must be valid UTF-8.*bad_lines="):
        list(ParallelCorpus(*paths))
    corpus = ParallelCorpus(*paths, bad_lines="skip")
    assert [target for _, target in corpus] == [t for i, (_, t) in enumerate(PAIRS) if i not in BAD]
    assert (corpus.report.dropped["invalid_utf8"], corpus.report.dropped["nul"]) == (2, 1)
    assert corpus.report.places["nul"] == [f"{paths[side]}:4"]


READ_IN_OTHER_LOCALE = """
from keras_transformer.data import ParallelCorpus
print(ascii(next(iter(ParallelCorpus("text.0", "text.1")))))
"""


@pytest.mark.parametrize("locale", ["C", "de_DE.ISO-8859-1"])
def test_text_is_utf8_whatever_the_locale(tmp_path, run_python, locale):
    """F19."""
    files(tmp_path)
    assert (
        run_python(READ_IN_OTHER_LOCALE, LC_ALL=locale, PYTHONUTF8="0")
        == ascii((PAIRS[0][0].strip(), PAIRS[0][1])) + "\n"
    )


def test_every_pair_left_out_is_counted_by_its_cause(tmp_path):
    """F21: and the rest is kept in order."""
    pairs = [
        ("a", "1"),
        (" ", ""),
        ("b", " \t"),
        ("", "2"),
        ("a", "1"),
        ("a ", " 1"),
        ("x" * 11, "3"),
        ("c", "é" * 6),
        ("d", "4"),
    ]
    corpus = ParallelCorpus(*files(tmp_path, pairs), max_bytes=10)
    assert list(corpus) == [("a", "1"), ("d", "4")]
    counts = {cause: count for cause, count in corpus.report.dropped.items() if count}
    assert counts == {"blank": 1, "one_sided_blank": 2, "duplicate": 2, "too_long": 2}
    assert corpus.report.read == 9 and corpus.report.kept == 2
    assert "2 of 9 pairs kept" in str(corpus.report) and "2 (22.2 %) over the limit of bytes" in str(corpus.report)
    assert len(list(ParallelCorpus(*files(tmp_path, pairs), max_bytes=10, drop_duplicates=False))) == 4


def test_report_is_saved_as_json(tmp_path):
    corpus = ParallelCorpus(*files(tmp_path))
    list(corpus)
    corpus.report.save(tmp_path / "report.json")
    saved = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert saved["read"] == saved["kept"] == 20 and not any(saved["dropped"].values())


@pytest.mark.parametrize("compress", [False, True])
def test_columns_of_a_tab_separated_file_are_a_corpus(tmp_path, compress):
    rows = ["I love water\t我爱水\t17", "Tea\t茶", "one column"]
    path = write(tmp_path / "text.tsv", rows, compress=compress)
    with pytest.raises(ValueError, match=r"text\.tsv:3: .*too few.*bad_lines="):
        list(ParallelCorpus(path))
    corpus = ParallelCorpus(path, columns=(1, 0), bad_lines="skip")
    assert list(corpus) == [("我爱水", "I love water"), ("茶", "Tea")]
    assert corpus.report.dropped["columns"] == 1


def test_corpus_is_read_as_it_goes_and_not_held_in_memory(tmp_path):
    """Two files of 6 MB each in less than 1 MB of memory."""
    import tracemalloc

    for side in (0, 1):
        write(tmp_path / f"text.{side}", (f"sentence number {i:012d}" for i in range(200_000)))
    corpus = ParallelCorpus(tmp_path / "text.0", tmp_path / "text.1", drop_duplicates=False)
    tracemalloc.start()
    assert sum(1 for _ in corpus) == 200_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e6


def test_files_that_cannot_be_read_are_named(tmp_path):
    source, _ = files(tmp_path)
    with pytest.raises(ValueError, match="Could not read .*missing"):
        ParallelCorpus(source, tmp_path / "missing")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(source.read_bytes())[:-20])
    with pytest.raises(ValueError, match=r"Could not read .*cut\.gz"):
        ParallelCorpus(source, tmp_path / "cut.gz")
    with pytest.raises(ValueError, match="Could not read"):
        ParallelCorpus(tmp_path)


def test_bad_options_are_refused(tmp_path):
    for name, value in (("bad_lines", "ignore"), ("max_bytes", 0), ("drop_duplicates", "yes")):
        with pytest.raises(ValueError, match=f"`{name}`.*Received"):
            ParallelCorpus(*files(tmp_path), **{name: value})
