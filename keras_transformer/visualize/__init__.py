"""Pictures: attention, positions, learning rates, training curves. Each function returns a matplotlib figure.

Figures are made without pyplot: nothing needs a display, and nothing stays in memory when the figure is let go.
`figure.savefig("attention.png")` writes one to a file; a notebook shows it as the value of a cell.
"""

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError("Pictures need matplotlib: pip install 'keras_transformer[visualize]'") from error

from keras_transformer.visualize.attention import alignment, attention_map
from keras_transformer.visualize.curves import learning_rate, positional_encoding, training_curves

__all__ = ["alignment", "attention_map", "learning_rate", "positional_encoding", "training_curves"]
