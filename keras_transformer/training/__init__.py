"""Training runs from recipes. Needs the extra `train`; `model.fit` on the rest of the package does not."""

from keras_transformer.training.recipe import RECIPES, Recipe, load_recipe
from keras_transformer.training.run import Run

__all__ = ["RECIPES", "Recipe", "Run", "load_recipe"]
