import tensorflow as tf

from keras_transformer.decoding import SearchOptions
from keras_transformer.decoding.searches import Searches
from keras_transformer.decoding.step import Ensemble
from keras_transformer.export import ServingLimits
from keras_transformer.export.row_search import RowSearch
from keras_transformer.models import TransformerConfig, transformer


def test_search_has_as_many_lines_at_a_time_as_the_limits_say():
    model = transformer(TransformerConfig.from_preset("tiny", 30, encoder_layers=1, decoder_layers=1))
    limits = ServingLimits(max_length=4, rows=3)
    search = RowSearch(Searches(Ensemble([model])), SearchOptions(), limits, vocabulary_size=30)
    at_a_time = []

    def finish(found, numbers):
        at_a_time.append(numbers.numpy().tolist())
        return (found.score,)

    ids = tf.ragged.constant([[5] * length + [3] for length in (2, 9, 1, 7, 3, 4, 8)])
    none = tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int32), [0] * 7)
    (scores,) = search.run(ids, none, search.defaults(7), (tf.zeros([7, 1]),), finish)
    assert at_a_time == [[1, 6, 3], [5, 4, 0], [2]]
    assert (scores.numpy() < 0).all()
