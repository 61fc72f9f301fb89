"""A page to try a model in the browser: text in, translations with their confidence and attention out."""

from keras_transformer.demo.engines import Engine, RunEngine, SavedModelEngine, engine_of
from keras_transformer.demo.page import make_page

__all__ = ["Engine", "RunEngine", "SavedModelEngine", "engine_of", "make_page"]
