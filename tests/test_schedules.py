"""The learning-rate schedules against float64, in optimizers, in files, and under gradient accumulation."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.schedules import CooldownSchedule, InverseSquareRootSchedule, NoamSchedule

SCHEDULES = {
    "noam": (NoamSchedule, {"model_dim": 512, "warmup_steps": 40, "scale": 2.0, "gradient_accumulation_steps": 3}),
    "inverse_square_root": (
        InverseSquareRootSchedule,
        {"peak_learning_rate": 0.25, "warmup_steps": 40, "gradient_accumulation_steps": 3},
    ),
}
every_schedule = pytest.mark.parametrize("schedule_class, arguments", SCHEDULES.values(), ids=SCHEDULES)


def noam(step, model_dim, warmup_steps):
    """Formula 3 of the paper in float64; the first update is step 1."""
    step = np.asarray(step, "float64")
    return model_dim**-0.5 * np.minimum(step**-0.5, step * float(warmup_steps) ** -1.5)


def inverse_square_root(step, peak, warmup_steps):
    step = np.asarray(step, "float64")
    return np.where(step < warmup_steps, peak * step / warmup_steps, peak * np.sqrt(warmup_steps / step))


def rates(schedule, count):
    """What an optimizer asks for at its first `count` batches."""
    return np.array(schedule(np.arange(count)))


@pytest.mark.parametrize("model_dim, warmup_steps", [(512, 4000), (1024, 4000), (128, 1), (8, 16000), (512, 30000)])
def test_noam_equals_formula_3(model_dim, warmup_steps):
    schedule = NoamSchedule(model_dim, warmup_steps)
    expected = noam(np.arange(1, 20001), model_dim, warmup_steps)
    np.testing.assert_allclose(rates(schedule, 20000), expected, rtol=1e-6)
    np.testing.assert_allclose(schedule(0), expected[0], rtol=1e-6)


def test_noam_scale_multiplies_the_rate():
    np.testing.assert_allclose(
        rates(NoamSchedule(512, 100, scale=2.5), 1000), 2.5 * noam(np.arange(1, 1001), 512, 100), rtol=1e-6
    )


def test_noam_defaults_are_those_of_the_base_model_of_the_paper():
    np.testing.assert_allclose(NoamSchedule(512)(3999), (512 * 4000) ** -0.5, rtol=1e-6)


@pytest.mark.parametrize("warmup_steps", [1, 2, 400, 4000])
def test_noam_peaks_at_the_end_of_the_warm_up(warmup_steps):
    values = rates(NoamSchedule(512, warmup_steps), 20000)
    assert np.argmax(values) + 1 == warmup_steps
    np.testing.assert_allclose(values.max(), (512 * warmup_steps) ** -0.5, rtol=1e-6)


@pytest.mark.parametrize("peak, warmup_steps", [(5e-3, 2000), (1.0, 1), (7e-4, 4000), (1e-3, 30000)])
def test_inverse_square_root_equals_its_formula(peak, warmup_steps):
    expected = inverse_square_root(np.arange(1, 20001), peak, warmup_steps)
    np.testing.assert_allclose(rates(InverseSquareRootSchedule(peak, warmup_steps), 20000), expected, rtol=1e-6)


def test_cooldown_is_the_schedule_and_then_a_straight_line_to_zero():
    plain = InverseSquareRootSchedule(0.5, 40)
    values = rates(CooldownSchedule(plain, total_steps=200, cooldown_steps=50), 220)
    steps = np.arange(1, 221)
    expected = inverse_square_root(steps, 0.5, 40) * np.clip((201 - steps) / 50, 0, 1)
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-9)
    assert values[199] > 0 == values[200]


def test_cooldown_counts_updates_of_accumulated_batches():
    plain = CooldownSchedule(InverseSquareRootSchedule(0.5, 4), 20, 10)
    schedule = CooldownSchedule(InverseSquareRootSchedule(0.5, 4, 3), 20, 10, gradient_accumulation_steps=3)
    np.testing.assert_allclose(rates(schedule, 60), np.repeat(rates(plain, 20), 3), rtol=1e-6)


def test_cooldown_comes_back_from_a_file(tmp_path):
    schedule = CooldownSchedule(NoamSchedule(512, 40), 200, 50, gradient_accumulation_steps=2)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(schedule), "mse")
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras").optimizer._learning_rate
    assert type(loaded) is CooldownSchedule and loaded.get_config() == schedule.get_config()
    np.testing.assert_allclose(rates(loaded, 500), rates(schedule, 500))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.1, 10, 5), "`schedule` must be a learning-rate schedule of Keras. Received: schedule=0.1"),
        ((NoamSchedule(512), 10, 11), "at most `total_steps`. Received: cooldown_steps=11, total_steps=10"),
        ((NoamSchedule(512), 10, 0), "`cooldown_steps` must be"),
        ((NoamSchedule(512), 1.5, 1), "`total_steps` must be"),
    ],
)
def test_cooldowns_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        CooldownSchedule(*arguments)


@pytest.mark.parametrize(
    "schedule, peak",
    [(InverseSquareRootSchedule(0.5, 100), 0.5), (NoamSchedule(512, 100), (512 * 100) ** -0.5)],
    ids=["inverse_square_root", "noam"],
)
def test_rate_is_continuous_at_the_end_of_the_warm_up(schedule, peak):
    before, at, behind = rates(schedule, 101)[98:]
    np.testing.assert_allclose(at, peak, rtol=1e-6)
    assert before < at > behind
    np.testing.assert_allclose(before, peak * 0.99, rtol=1e-5)
    np.testing.assert_allclose(behind, peak * (100 / 101) ** 0.5, rtol=1e-5)


def test_rate_is_above_zero_at_the_first_update():
    np.testing.assert_allclose(InverseSquareRootSchedule(0.4, 100)(0), 0.004, rtol=1e-6)


@every_schedule
@pytest.mark.parametrize("step", [7, 10**6])
def test_steps_of_every_kind_give_the_same_rate(schedule_class, arguments, step):
    schedule = schedule_class(**arguments)
    expected = np.asarray(schedule(step))
    assert expected.shape == ()
    assert expected.dtype == "float32"
    for same in (
        np.int32(step),
        np.int64(step),
        np.array(step),
        np.float32(step),
        tf.constant(step, "int32"),
        tf.constant(step, "int64"),
        tf.Variable(step, dtype="int64"),
        keras.Variable(step, dtype="int32"),
        keras.Variable(step, dtype="int64"),
    ):
        np.testing.assert_array_equal(schedule(same), expected)


@every_schedule
@pytest.mark.parametrize("jit_compile", [False, True])
def test_rate_in_a_graph_equals_the_eager_one(schedule_class, arguments, jit_compile):
    schedule = schedule_class(**arguments)
    compiled = tf.function(schedule, jit_compile=jit_compile)
    for step in (0, 5, 119, 120, 5000):
        np.testing.assert_allclose(compiled(tf.constant(step, "int64")), schedule(step), rtol=1e-6)


def used_rates(optimizer, batches):
    """By how much each batch moves a variable whose gradient is 1."""
    variable, moves = keras.Variable(0.0), []
    for _ in range(batches):
        variable.assign(0.0)
        optimizer.apply([keras.ops.ones(())], [variable])
        moves.append(-float(variable))
    return moves


def test_optimizer_uses_the_rate_of_step_one_first():
    moves = used_rates(keras.optimizers.SGD(NoamSchedule(16, 4)), 10)
    np.testing.assert_allclose(moves, noam(np.arange(1, 11), 16, 4), rtol=1e-6)


def test_schedule_counts_weight_updates_under_gradient_accumulation():
    """F14."""
    schedule = NoamSchedule(16, 4, gradient_accumulation_steps=4)
    moves = used_rates(keras.optimizers.SGD(schedule, gradient_accumulation_steps=4), 40)
    updates = [move for move in moves if move != 0]
    assert updates == moves[3::4]
    np.testing.assert_allclose(updates, noam(np.arange(1, 11), 16, 4), rtol=1e-6)


def test_fit_counts_weight_updates_under_gradient_accumulation():
    """F14."""
    schedule = InverseSquareRootSchedule(0.5, 4, gradient_accumulation_steps=4)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")])
    optimizer = keras.optimizers.SGD(schedule, gradient_accumulation_steps=4)
    model.compile(optimizer, lambda _, y: -keras.ops.mean(y))  # The gradient of the only weight is -1.
    weights = [0.0]
    record = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: weights.append(float(model.trainable_variables[0].numpy()[0, 0]))
    )
    model.fit(np.ones((40, 1)), np.ones((40, 1)), batch_size=1, verbose=0, callbacks=[record])
    moves = np.diff(weights)
    np.testing.assert_allclose(moves[3::4], inverse_square_root(np.arange(1, 11), 0.5, 4), rtol=1e-5)
    assert np.count_nonzero(moves) == 10


@every_schedule
def test_config_round_trip_through_json_gives_an_equal_schedule(schedule_class, arguments):
    """F09."""
    schedule = schedule_class(**arguments)
    assert schedule.get_config() == arguments
    serialized = json.loads(json.dumps(keras.optimizers.schedules.serialize(schedule)))
    for clone in (
        keras.optimizers.schedules.deserialize(serialized),
        schedule_class.from_config(json.loads(json.dumps(schedule.get_config()))),
    ):
        assert type(clone) is schedule_class
        assert clone.get_config() == arguments
        np.testing.assert_array_equal(rates(clone, 500), rates(schedule, 500))


@pytest.mark.parametrize(
    "schedule",
    [
        NoamSchedule(np.int64(512), np.int64(40), np.float32(2.0), np.int32(3)),
        InverseSquareRootSchedule(np.float32(0.25), np.int64(40), np.int32(3)),
    ],
    ids=SCHEDULES,
)
def test_config_of_numpy_arguments_is_ready_for_json(schedule):
    """F09."""
    config = schedule.get_config()
    assert json.loads(json.dumps(config)) == config


NEXT_RATE_CODE = """
import sys
import keras
import keras_transformer

optimizer = keras.models.load_model(sys.argv[1]).optimizer
print(type(optimizer._learning_rate).__name__, int(optimizer.iterations), float(optimizer.learning_rate))
"""


@pytest.mark.parametrize("accumulation", [None, 2])
def test_saved_optimizer_goes_on_at_the_same_rate_in_a_fresh_process(tmp_path, run_python, accumulation):
    """F09, F14."""
    schedule = NoamSchedule(16, 40, gradient_accumulation_steps=accumulation or 1)
    optimizer = keras.optimizers.Adam(schedule, beta_2=0.98, gradient_accumulation_steps=accumulation)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile(optimizer, "mse")
    model.fit(np.ones((6, 3)), np.ones((6, 2)), batch_size=1, verbose=0)
    model.save(tmp_path / "model.keras")
    name, iterations, rate = run_python(NEXT_RATE_CODE, tmp_path / "model.keras").split()
    updates = 6 // (accumulation or 1)
    assert (name, int(iterations)) == ("NoamSchedule", updates)
    assert float(rate) == float(optimizer.learning_rate)
    np.testing.assert_allclose(float(rate), noam(updates + 1, 16, 40), rtol=1e-6)


WHOLE_NUMBERS = (0, -1, 2.5, "4", None, True)
ABOVE_ZERO = (0, -1.0, float("inf"), float("nan"), "1", None, True)


@pytest.mark.parametrize(
    "schedule_class, name, value",
    [
        *(
            (NoamSchedule, name, v)
            for name in ("model_dim", "warmup_steps", "gradient_accumulation_steps")
            for v in WHOLE_NUMBERS
        ),
        *((NoamSchedule, "scale", v) for v in ABOVE_ZERO),
        *(
            (InverseSquareRootSchedule, name, v)
            for name in ("warmup_steps", "gradient_accumulation_steps")
            for v in WHOLE_NUMBERS
        ),
        *((InverseSquareRootSchedule, "peak_learning_rate", v) for v in ABOVE_ZERO),
    ],
)
def test_arguments_out_of_range_raise(schedule_class, name, value):
    required = {NoamSchedule: {"model_dim": 8}, InverseSquareRootSchedule: {"peak_learning_rate": 0.1}}[schedule_class]
    with pytest.raises(ValueError, match=f"{name}.*Received: "):
        schedule_class(**{**required, name: value})
