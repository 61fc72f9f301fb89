"""A preset of a model that says nothing sensible."""

import pytest

TEXTS = ["I love easy courses", "我爱水课", "", "Jane visits Africa"]


@pytest.fixture(scope="package")
def preset(tmp_path_factory):
    pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")
    from keras_transformer.decoding import Translator
    from keras_transformer.text import Tokenizer
    from tests.decoding.models import random_model

    folder = tmp_path_factory.mktemp("preset")
    tokenizer = Tokenizer.train([*TEXTS, *TEXTS], 300, "bpe")
    Translator(random_model(300, seed=3), tokenizer).save_to_preset(folder)
    return folder
