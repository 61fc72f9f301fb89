"""What `fit` needs on several machines beyond what Keras 3.15 does."""

from __future__ import annotations

import keras
from keras import ops


def of_this_replica(model, variable):
    """The value of a variable of which each replica of a model has its own, as of the first replica of this machine.

    Without the conversation between machines that reading it takes otherwise.
    """
    if keras.backend.backend() != "tensorflow":
        return variable
    return model.distribute_strategy.experimental_local_results(variable.value)[0]


def reducible_logs(logs):
    """The logs of a step in a shape that Keras can average over machines.

    Under MultiWorkerMirroredStrategy Keras averages the logs of replicas along their first axis, and logs are scalars:
    TensorFlow refuses. Under anything else they stay as they are.
    """
    if keras.backend.backend() != "tensorflow":
        return logs
    import tensorflow as tf

    if not isinstance(tf.distribute.get_strategy(), tf.distribute.MultiWorkerMirroredStrategy):
        return logs
    return keras.tree.map_structure(lambda value: ops.reshape(value, (1,)), logs)
