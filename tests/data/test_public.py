import dataclasses
import hashlib
import http.server
import shutil
import threading
from pathlib import Path

import pytest

from keras_transformer.data import ParallelCorpus, public
from keras_transformer.data.public import PUBLIC_DATASETS, dataset_files

FILES = {f"{split}.{side}": f"{split} {side}\n".encode() * 500 for split in ("train", "val") for side in ("en", "de")}
SHARED = Path(__file__).parents[2].parent / "shared/data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the real data is not in ../shared/data")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def toy(**changes):
    sums = {file: sha256(data) for file, data in FILES.items()}
    splits = {split: {file: sums[file] for file in (f"{split}.en", f"{split}.de")} for split in ("train", "val")}
    dataset = public.PublicDataset("toy", ("en", "de"), "Ours.", "toys", splits)
    return dataclasses.replace(dataset, **changes)


class Home:
    """A server on this machine: `answers` are what it sends, `asked` what it was asked for."""

    def __init__(self):
        self.answers, self.asked, self.promised = dict(FILES), [], {}
        home = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                file = self.path.removeprefix("/")
                home.asked.append(file)
                if file not in home.answers:
                    self.send_error(404)
                    return
                self.send_response(200)
                length = home.promised.get(file, len(home.answers[file]))
                if length is not None:
                    self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(home.answers[file])

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def home(monkeypatch):
    home = Home()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setitem(PUBLIC_DATASETS, "toy", toy(home=home.url))
    yield home
    home.close()


def test_files_are_downloaded_once_and_are_the_arguments_of_a_corpus(home, tmp_path, capfd):
    files = dataset_files("toy", cache_dir=tmp_path / "cache")
    folder = tmp_path / "cache/keras_transformer/toys"
    assert files["train"] == {"source": folder / "train.en", "target": folder / "train.de"}
    assert list(ParallelCorpus(**files["val"])) == [("val en", "val de")]
    assert sorted(home.asked) == sorted(FILES) and not capfd.readouterr().out
    assert dataset_files("toy", cache_dir=tmp_path / "cache") == files and len(home.asked) == 4


DOWNLOAD = """
import dataclasses, sys
from keras_transformer.data import public
files = {"train.en": sys.argv[2], "train.de": sys.argv[3]}
toy = public.PublicDataset("toy", ("en", "de"), "Ours.", "toys", {"train": files}, sys.argv[1])
public.PUBLIC_DATASETS["toy"] = toy
print(public.dataset_files("toy")["train"]["source"])
"""


def test_cache_is_that_of_keras(home, tmp_path, run_python):
    sums = [sha256(FILES[f"train.{side}"]) for side in ("en", "de")]
    printed = run_python(DOWNLOAD, home.url, *sums, KERAS_HOME=str(tmp_path / "keras"), no_proxy="127.0.0.1")
    assert printed.splitlines()[-1] == str(tmp_path / "keras/keras_transformer/toys/train.en")


def test_other_file_at_the_public_home_is_refused_with_both_sums(home, tmp_path):
    home.answers["train.de"] = b"Not found, says a page of the provider"
    expected, received = sha256(FILES["train.de"]), sha256(home.answers["train.de"])
    for _ in range(2):  # Also the second time, with the file in the cache.
        with pytest.raises(
            ValueError, match=rf"train\.de must be {expected}.*{home.url}.*--data.*Received: {received}"
        ):
            dataset_files("toy", cache_dir=tmp_path)
    home.answers = FILES
    assert dataset_files("toy", cache_dir=tmp_path)["train"]["target"].read_bytes() == FILES["train.de"]


@pytest.mark.parametrize("promised", ["length of the whole", None])
def test_download_that_breaks_off_is_refused_and_repaired_at_the_next_call(home, tmp_path, promised):
    """With the length in the answer's head, and without it."""
    whole = home.answers["val.en"]
    home.answers["val.en"], home.promised["val.en"] = whole[:-100], promised and len(whole)
    with pytest.raises(ValueError, match=r"val\.en.*Received: "):
        dataset_files("toy", cache_dir=tmp_path)
    home.answers["val.en"] = whole
    assert dataset_files("toy", cache_dir=tmp_path)["val"]["source"].read_bytes() == whole


def test_half_a_file_that_a_killed_process_left_in_the_cache_is_repaired(home, tmp_path):
    path = dataset_files("toy", cache_dir=tmp_path)["val"]["source"]
    path.write_bytes(FILES["val.en"][:-100])
    dataset_files("toy", cache_dir=tmp_path)
    assert path.read_bytes() == FILES["val.en"] and home.asked[4:] == ["val.en"]


def test_failed_download_names_the_address_and_the_way_round(home, tmp_path):
    del home.answers["train.de"]
    with pytest.raises(ValueError, match=rf"{home.url}/train\.de: .*--data PATH.*Received: .*404"):
        dataset_files("toy", cache_dir=tmp_path)
    home.close()
    (tmp_path / "other").write_text("")
    for cache, reason in (("cache", "refused"), ("other", "File exists")):
        with pytest.raises(ValueError, match=rf"{home.url}/train\.en: .*--data PATH.*Received: .*{reason}"):
            dataset_files("toy", cache_dir=tmp_path / cache)


@pytest.mark.parametrize("place", [".", "toys"])
def test_files_in_a_folder_of_the_user_are_taken_and_checked(home, tmp_path, place):
    (tmp_path / place).mkdir(exist_ok=True)
    for file, data in FILES.items():
        (tmp_path / place / file).write_bytes(data)
    files = dataset_files("toy", tmp_path, source_language="de")
    assert files["train"] == {"source": tmp_path / place / "train.de", "target": tmp_path / place / "train.en"}
    (tmp_path / place / "train.en").write_bytes(b"other")
    expected, received = sha256(FILES["train.en"]), sha256(b"other")
    with pytest.raises(ValueError, match=rf"train\.en must be {expected}.*Received: {received}"):
        dataset_files("toy", str(tmp_path))
    (tmp_path / place / "train.en").unlink()
    with pytest.raises(ValueError, match=r"--data PATH.*or in toys there. Not found: train\.en. Received: "):
        dataset_files("toy", tmp_path)
    with pytest.raises(ValueError, match=r"Not found: train\.en, train\.de, .*Received: .*missing, which is no folder"):
        dataset_files("toy", tmp_path / "missing")
    assert home.asked == []


def test_unknown_set_or_language_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'tatoeba-cmn-eng'. Did you mean 'multi30k'\? Received: .*'multi3k'"):
        dataset_files("multi3k")
    with pytest.raises(ValueError, match="`source_language` must be one of 'en', 'de'. Received: .*'fr'"):
        dataset_files("multi30k", source_language="fr")


def test_set_without_a_public_home_says_which_files_are_needed():
    with pytest.raises(ValueError, match=r"(?s)--data PATH.*train\.tsv\.gz  sha256 27f174bb.*Received") as raised:
        dataset_files("tatoeba-cmn-eng")
    assert all(sha256 in str(raised.value) for sha256 in PUBLIC_DATASETS["tatoeba-cmn-eng"].sums.values())


PAIRS = {
    "multi30k": {"train": 29_000, "validation": 1_014, "test_2016_flickr": 1_000},
    "tatoeba-cmn-eng": {"train": 27_038, "validation": 833},
}


@needs_shared
@pytest.mark.parametrize("name", PAIRS)
def test_sums_and_counts_are_those_of_the_real_data(name):
    files = dataset_files(name, SHARED)
    for split, pairs in PAIRS[name].items():
        corpus = ParallelCorpus(**files[split])
        kept = list(corpus)
        assert corpus.report.read == pairs and len(kept) > 0.9 * pairs


@needs_shared
def test_columns_follow_the_source_language(tmp_path):
    for file in PUBLIC_DATASETS["tatoeba-cmn-eng"].sums:
        shutil.copy(SHARED / "tatoeba" / file, tmp_path)
    pairs = {
        language: next(iter(ParallelCorpus(**dataset_files("tatoeba-cmn-eng", tmp_path, language)["validation"])))
        for language in ("eng", "cmn")
    }
    assert pairs["eng"] == pairs["cmn"][::-1] and pairs["eng"][0].isascii()


def test_every_set_names_its_licence():
    assert "Research and education use only" in PUBLIC_DATASETS["multi30k"].licence
    assert "CC BY 2.0 FR" in PUBLIC_DATASETS["tatoeba-cmn-eng"].licence
    assert "tatoeba.org" in PUBLIC_DATASETS["tatoeba-cmn-eng"].licence
