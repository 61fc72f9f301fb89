"""The package as a stranger gets it."""

TIME_IMPORT = """
import time
import keras
start = time.perf_counter()
import keras_transformer
print(time.perf_counter() - start)
"""


def test_import_takes_at_most_half_a_second_longer_than_that_of_keras(run_python):
    """One of three, for other work on the machine disturbs some."""
    assert any(float(run_python(TIME_IMPORT)) < 0.5 for _ in range(3))


WITHOUT_TEXT_LIBRARIES = """
import sys
for name in ("tensorflow_text", "keras_nlp", "keras_hub", "sentencepiece", "sacrebleu", "torch", "jax", "scipy"):
    sys.modules[name] = None  # An import of it raises ImportError.
import numpy as np
from keras_transformer.losses import MaskedCrossentropy
from keras_transformer.models import TransformerConfig, transformer
model = transformer(TransformerConfig(20, encoder_layers=1, decoder_layers=1, model_dim=8, intermediate_dim=8))
model.compile("adam", MaskedCrossentropy())
ids = np.ones((2, 3), "int32")
model.fit({"source_ids": ids, "target_ids": ids}, ids, verbose=0)
model.save("model.keras")
print("trained")
"""


def test_layers_and_model_import_train_and_save_without_the_text_libraries(run_python):
    """F42."""
    assert run_python(WITHOUT_TEXT_LIBRARIES) == "trained\n"
