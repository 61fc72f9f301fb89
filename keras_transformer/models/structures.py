"""What Keras may hand on in a list or a dict."""

from __future__ import annotations

import keras


def only(structure):
    """The one item of a list or dict, which Keras takes for the item itself; None where there are more."""
    items = keras.tree.flatten(structure)
    return items[0] if len(items) == 1 else None


def labels_of(y):
    """The labels in `y`. Raises ValueError where there are none."""
    if y is None:
        raise ValueError("The loss needs labels, [batch, length]. Received: y=None")
    return only(y)
