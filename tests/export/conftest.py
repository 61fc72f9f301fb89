"""What the tests of exports share: one small model, exported once."""

import pytest


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """A `Translator` that says nothing sensible, but something else for each source; and its version folder."""
    pytest.importorskip("tensorflow_text", reason="the tokenizer needs tensorflow-text")
    pytest.importorskip("tensorflow_serving", reason="warm-up requests need tensorflow-serving-api")
    from keras_transformer.data.phrasebook import phrasebook
    from keras_transformer.decoding import Translator
    from keras_transformer.models import TransformerConfig, transformer
    from keras_transformer.text import Tokenizer
    from tests.decoding.models import randomize

    texts = [text for pair in phrasebook("zh", "train")[:300] for text in pair]
    tokenizer = Tokenizer.train(texts, vocabulary_size=700, model_type="bpe")
    sizes = {"encoder_layers": 1, "decoder_layers": 1}
    # With these the outputs vary most.
    varied = {"positions": "learned", "max_length": 128, "tie_embeddings": "none"}
    model = transformer(TransformerConfig.from_preset("tiny", tokenizer.vocabulary_size, **sizes, **varied))
    randomize(model, seed=4)
    translator = Translator(model, tokenizer)
    return translator, translator.export(tmp_path_factory.mktemp("exports") / "small")
