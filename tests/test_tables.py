"""Score tables that NumPy builds and evaluates are those of a program, and so are their metrics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import in_turn
from registry import CURVES, METRICS

import jaxmetrics as jm
from jaxmetrics._roc.table import _score_table, settled
from jaxmetrics._roc.table_values import _evaluate

N = 13
OF_TABLES = {"score_table": jm.score_table, **CURVES} | {
    x.name: x.metric
    for x in METRICS
    if (record := getattr(x.metric, "record", None)) and record.of_placements is None
}


@pytest.mark.parametrize(("name", "given"), in_turn(OF_TABLES, [(), ("where", "weights")]))
def test_numpy_and_a_program_agree(name, given):
    """Bit for bit; ties, -0.0, infinities, NaN, one class, masked items, sums of whole weights.

    The program of a score table is one for each dtype, the others are one for all.
    """
    metric, rng = OF_TABLES[name], np.random.default_rng(0)
    compiled = jax.jit(lambda scores, labels, options: metric(scores, labels, **options))
    some = [0.0, -0.0, np.inf, -np.inf, 1.0, 1.0, 2.0, -3.5]
    for dtype in ("float32", "float16", "int8"):
        for trial in range(12):
            scores = rng.choice([*some, np.nan] if trial == 3 else some[2 * (dtype == "int8") :], N)
            scores = np.nan_to_num(scores, posinf=9, neginf=-9) if dtype == "int8" else scores
            labels = rng.random(N) < rng.choice([0.0, 0.2, 0.5, 1.0], p=[0.1, 0.4, 0.4, 0.1])
            options = {"where": rng.random(N) < 0.8, "weights": rng.integers(0, 4, N) * 1.0}
            options = {k: options[k] for k in given}
            scores = scores.astype(dtype)
            wide = scores if name == "score_table" else scores.astype("float32")
            jax.tree.map(
                np.testing.assert_array_equal,
                metric(scores, labels, **options),
                compiled(wide, labels, {k: jnp.asarray(v) for k, v in options.items()}),
            )


def test_tables_and_batches_of_them_need_no_program():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(3, 50)), rng.random(50) < 0.4
    programs = _evaluate._cache_size(), _score_table._cache_size()
    tables = jm.score_table(scores, labels)
    for metric in (jm.roc_auc, jm.roc_curve, jm.min_cost_threshold):
        for i in range(3):
            alone, row = metric(scores[i], labels), jax.tree.map(lambda x, i=i: x[i], tables)
            whole = jax.tree.map(lambda x, i=i: x[i], metric(tables))
            jax.tree.map(np.testing.assert_array_equal, alone, whole)
            jax.tree.map(np.testing.assert_array_equal, alone, metric(row))
    assert (_evaluate._cache_size(), _score_table._cache_size()) == programs


@pytest.mark.parametrize("library", [np, jnp])
def test_a_table_without_rows_has_no_value(library):
    table = jm.ScoreTable(*[library.zeros((2, 0))] * 3)
    np.testing.assert_array_equal(jm.precision_at_recall(table, min_recall=0.5), [np.nan] * 2)


def test_first_rows_without_weight_have_the_first_threshold_of_their_table():
    weighty = jnp.array([[False, True, True], [True, False, True]])
    found = settled(jnp.array([[3.0, 2, 1]] * 2), weighty)
    assert found.tolist() == [[2, 2, 1], [3, 3, 1]]
