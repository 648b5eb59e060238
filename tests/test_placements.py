"""Sources of placements agree: what NumPy sorts or selects from, selections in `jit`, tables.

So do the moments that NumPy adds up from slopes in placements with those of a table.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmetrics as jm
from jaxmetrics._base import merging, sorting
from jaxmetrics._base.checks import check_items
from jaxmetrics._roc import host_placements
from jaxmetrics._roc.record import record_of
from jaxmetrics.inference._influence import host_slopes, variance
from tests.registry import METRICS

OF_PLACEMENTS = [x for x in METRICS if record_of(x.metric).of_placements is not None]
N = 13
DTYPES = ("float32", "float16", "bfloat16", "int8", "bool")


@pytest.fixture(params=["whole", "parts"])
def parts(request, monkeypatch):
    """Short rows are also cut into parts, and merged, as long ones are."""
    if request.param == "parts":
        monkeypatch.setattr(sorting, "MANY", 2)
        monkeypatch.setattr(sorting, "processors", lambda: 3)
        for name, size in (("_SMALL", 0), ("_BLOCK", 3), ("_SPARSE", 4)):
            monkeypatch.setattr(merging, name, size)


def _scores(rng, dtype):
    scores = rng.integers(-2, 3, N) if rng.random() < 0.5 else rng.normal(size=N) * 3
    scores = scores.astype(np.float64)
    if dtype not in ("int8", "bool"):
        odd = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan], N, p=[0.3, 0.3, 0.19, 0.19, 0.02])
        scores = np.where(rng.random(N) < 0.2, odd, scores)
    return scores.astype(jnp.dtype(dtype))


def _items(rng, given):
    labels = rng.random(N) < rng.choice([0.0, 0.15, 0.5, 0.85, 1.0], p=[0.1, 0.3, 0.3, 0.2, 0.1])
    weights = rng.choice([0.0, 0.25, 1.0, 3.0], N) * rng.choice([2.0**-90, 1, 2.0**90])
    some = {"weights": weights, "where": rng.random(N) < 0.8, "amounts": rng.choice([0.0, 1, 7], N)}
    return labels, {name: some[name] for name in given}


@pytest.mark.parametrize("given", [(), ("where",), ("weights",), ("where", "weights", "amounts")])
@pytest.mark.parametrize("entry", OF_PLACEMENTS, ids=lambda x: x.name)
def test_host_and_table_agree(entry, given, parts):
    """To the last bit of float32; ties, -0.0, infinities, NaN, one class, dtypes."""
    given = [x for x in given if x != "amounts" or record_of(entry.metric).amounts]
    rng = np.random.default_rng(0)
    compiled = jax.jit(lambda s, y, options: entry.metric(s, y, **options))
    for dtype in DTYPES:
        for _ in range(12):
            scores, (labels, options) = _scores(rng, dtype), _items(rng, given)
            host = entry.metric(scores, labels, **options)
            table = compiled(scores, labels, {k: jnp.asarray(v) for k, v in options.items()})
            assert (host.dtype, host.shape) == (table.dtype, table.shape)
            np.testing.assert_array_equal(host, table, err_msg=f"{scores} {labels} {options}")
            if "amounts" not in given:  # of a table nothing is selected
                of_table = entry.metric(jm.score_table(scores, labels, **options))
                np.testing.assert_array_equal(host, of_table)


def test_doubles_are_not_rounded(parts):
    """Scores that float32 cannot tell apart, and in x64 mode the same digits as the table."""
    rng = np.random.default_rng(1)
    for entry in OF_PLACEMENTS:
        for _ in range(6):
            labels, options = _items(rng, ("where",))
            scores = 1 + rng.integers(-2, 3, N) * 1e-12
            ranks = np.unique(scores, return_inverse=True)[1].astype(np.float32)
            if entry.rank_only:
                found = [entry.metric(x, labels, **options) for x in (scores, ranks)]
                np.testing.assert_array_equal(*found)
            with jax.enable_x64(True):
                compiled = jax.jit(entry.metric)(scores, labels, **options)
                np.testing.assert_allclose(
                    entry.metric(scores, labels, **options), compiled, rtol=1e-14, atol=1e-15
                )


@pytest.mark.parametrize("n_values", [0, 1, 5, 400])
@pytest.mark.parametrize("n_at", [0, 1, 7, 300])
def test_merging(n_values, n_at, parts):
    rng = np.random.default_rng(2)
    for spread in (3, 1000):
        values, at = (np.sort(rng.integers(0, spread, n)) for n in (n_values, n_at))
        below, not_above = merging.below_and_not_above(values, at)
        np.testing.assert_array_equal(below, np.searchsorted(values, at, "left"))
        np.testing.assert_array_equal(not_above, np.searchsorted(values, at, "right"))


def test_inputs_are_not_reordered(parts):
    """The classes are sorted in place, in copies."""
    rng = np.random.default_rng(3)
    scores, labels = rng.normal(size=N).astype(np.float32), rng.random(N) < 0.5
    kept = scores.copy()
    for entry in OF_PLACEMENTS:
        entry.metric(scores, labels)
        entry.metric(scores, np.ones(N, bool))
        entry.metric(scores, np.zeros(N, bool))
    np.testing.assert_array_equal(scores, kept)


def test_batches_are_rows(parts, monkeypatch):
    """Leading axes broadcast, and batches may be empty."""
    monkeypatch.setattr(host_placements, "_SHORT", 0)
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(3, 1, N)).astype(np.float32)
    labels, where = rng.random((2, N)) < 0.5, rng.random((1, 1, N)) < 0.8
    for entry in OF_PLACEMENTS:
        batch = entry.metric(scores, labels, where=where)
        rows = [[entry.metric(s[0], y, where=where[0, 0]) for y in labels] for s in scores]
        np.testing.assert_array_equal(batch, np.array(rows))
        assert entry.metric(scores[:0], labels).shape == (0, *batch.shape[1:])


@pytest.mark.parametrize("method", ["inverted_cdf", "lower", "linear"])
def test_quantiles_beside_infinities(method):
    """By hand: of negatives -inf, 0, 1, 2, inf the value at 3/4 is 2, which inf does not reach."""
    scores, labels = [-np.inf, 0, 1, 2, np.inf, 1.5, 3], [0, 0, 0, 0, 0, 1, 1]
    recall = partial(jm.recall_at_fpr, max_fpr=0.25, method="quantile", quantile_method=method)
    for found in (recall(scores, labels), jax.jit(recall)(jnp.array(scores), jnp.array(labels))):
        assert found == 0.5
    between = partial(recall, max_fpr=0.1, quantile_method="linear")  # of 2 and inf
    for found in (between(scores, labels), jax.jit(between)(jnp.array(scores), jnp.array(labels))):
        assert np.isnan(found)


SMOOTH = {
    "roc_auc": jm.roc_auc,
    "average_precision": jm.average_precision,
    "partial_auc": partial(jm.partial_auc, max_fpr=0.3),
    "of arrays": partial(jm.partial_auc, max_fpr=np.float32(0.375), min_tpr=jnp.float32(0.25)),
    "between": partial(jm.partial_auc, max_fpr=0.5, min_fpr=0.25, scale="mcclish"),
    # Limits that fall on steps, where the slope is that of the middle.
    "on a step": partial(jm.partial_auc, max_fpr=np.float32(0.25), min_tpr=0.5, scale="range"),
}


@pytest.fixture(params=["whole", "head"])
def head(request, monkeypatch):
    """Few items, too, are cut to the head that counts, as many are."""
    monkeypatch.setattr(host_slopes, "_FEW", 0 if request.param == "head" else 1 << 14)


def _no_tables(monkeypatch):
    """Moments of concrete data come from NumPy alone."""

    def refuse(*_):
        raise AssertionError("of a table")

    monkeypatch.setattr(variance, "problems_of", refuse)


@pytest.mark.parametrize("given", [("where",), ("where", "weights")], ids="-".join)
@pytest.mark.parametrize("name", SMOOTH)
def test_moments_on_host_and_of_tables_agree(name, given, monkeypatch):
    """Ties, -0.0, infinities, NaN, one class, few items, and the slope in an option."""
    metric = SMOOTH[name]
    slope_in = "max_fpr" if isinstance(metric, partial) else None

    def moments(scores, labels, options):
        items = check_items(scores, labels, options.get("weights"), options.get("where"))
        found = variance.moments_of(metric, items, slope_in)
        return *found, variance.influence_values(metric, items)

    compiled = jax.jit(moments)
    rng = np.random.default_rng(5)
    for dtype in ("float32", "float64"):
        for n_valid in (0, 1, 2, 2, 3, 3, *[N // 2] * 4, *[N] * 8):
            scores, (labels, options) = _scores(rng, dtype), _items(rng, given)
            options["where"] = rng.permutation(N) < n_valid
            monkeypatch.setattr(host_slopes, "_FEW", rng.choice([0, N + 1]))
            with jax.enable_x64(True), monkeypatch.context() as patch:
                table, slope, influence = compiled(scores, labels, options)
                _no_tables(patch)
                if n_valid == N:
                    del options["where"]
                host, host_slope, of_items = moments(scores, labels, options)
            message = f"{scores} {labels} {options}"
            for found, expected in zip(jax.tree.leaves(host), jax.tree.leaves(table), strict=True):
                np.testing.assert_allclose(found, expected, 1e-10, 1e-14, err_msg=message)
            np.testing.assert_allclose(of_items, influence, 1e-10, 1e-14, err_msg=message)
            if slope_in is not None and not np.isnan(host.estimate):
                np.testing.assert_allclose(host_slope, slope, 1e-10, 1e-14, err_msg=message)


@pytest.mark.filterwarnings("ignore:there :UserWarning", "ignore:only :UserWarning")
def test_closed_form_intervals_on_host_and_in_jit(monkeypatch):
    """Of every dtype, to the last digit of float32."""
    metric = SMOOTH["partial_auc"]

    def numbers(scores, labels):
        found = jm.confidence_interval(metric, scores, labels)
        error = jm.standard_error(metric, scores, labels)
        return jnp.stack([found.estimate, found.low, found.high, found.standard_error, error])

    compiled = jax.jit(numbers)
    rng = np.random.default_rng(9)
    for _ in range(8):
        scores, (labels, _) = _scores(rng, "int8"), _items(rng, ())
        table = compiled(scores.astype(np.float32), labels)
        for dtype in (*DTYPES[:-1], "float64"):
            with monkeypatch.context() as patch:
                _no_tables(patch)
                host = numbers(scores.astype(jnp.dtype(dtype)), labels)
            assert (host.dtype, host.shape) == (table.dtype, table.shape)
            np.testing.assert_allclose(host, table, rtol=2.4e-7, atol=1e-9)


@pytest.mark.parametrize("share", [0.05, 0.5])
@pytest.mark.parametrize("decimals", [1, 6])
def test_standard_error_of_many_is_delong_s(share, decimals, monkeypatch):
    """Placement values by search, of enough items for each branch; ties, and a mask over NaN."""
    _no_tables(monkeypatch)
    rng = np.random.default_rng(6)
    n = 40_000
    labels, where = rng.random(n) < share, rng.random(n) < 0.9
    scores = (rng.normal(size=n) + labels).round(decimals)
    negatives, positives = (np.sort(scores[where & (labels == kind)]) for kind in (False, True))
    total = 0.0
    for own, other in ((negatives, positives), (positives, negatives)):
        sides = [other.searchsorted(own, side) for side in ("left", "right")]
        total += np.var(sum(sides) / 2 / len(other), ddof=1) / len(own)
    with jax.enable_x64(True):
        error = jm.standard_error(jm.roc_auc, np.where(where, scores, np.nan), labels, where=where)
    np.testing.assert_allclose(error, np.sqrt(total), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:there :UserWarning", "ignore:only :UserWarning")
def test_moments_of_batches_are_those_of_rows(head, monkeypatch):
    monkeypatch.setattr(host_slopes, "_SHORT", 0)
    _no_tables(monkeypatch)
    rng = np.random.default_rng(7)
    scores = rng.normal(size=(3, 1, N)).astype(np.float32)
    labels, where = rng.random((2, N)) < 0.5, rng.random((1, 1, N)) < 0.8
    for metric in SMOOTH.values():
        batch = jm.confidence_interval(metric, scores, labels, where=where)
        influence = jm.influence(metric, scores, labels, where=where)
        for i, j in np.ndindex(3, 2):
            row = jm.confidence_interval(metric, scores[i, 0], labels[j], where=where[0, 0])
            for name in ("estimate", "low", "high", "standard_error"):
                found = getattr(batch, name)
                assert found.shape == (3, 2)
                np.testing.assert_array_equal(found[i, j], getattr(row, name))
            of_row = jm.influence(metric, scores[i, 0], labels[j], where=where[0, 0])
            np.testing.assert_array_equal(influence[i, j], of_row)
        errors = jnp.diagonal(jm.covariance(metric, scores[:, 0], labels[0])) ** 0.5
        of_models = jm.standard_error(metric, scores[:, 0], labels[0])
        np.testing.assert_allclose(errors, of_models, rtol=1e-6, atol=1e-9)


def test_moments_of_weights_far_from_one(head, monkeypatch):
    """Squares of weights neither overflow nor vanish, and one of no weight is not counted."""
    _no_tables(monkeypatch)
    rng = np.random.default_rng(8)
    labels = rng.random(40) < 0.5
    scores = rng.integers(0, 6, 40) + 3.0 * labels
    weights = rng.choice([0.0, 1.0, 3.0], 40)
    with jax.enable_x64(True):
        for metric in SMOOTH.values():
            errors = [
                jm.standard_error(metric, scores, labels, weights=weights * unit)
                for unit in (1.0, 2.0**900, 2.0**-900)
            ]
            assert errors[0] > 0
            np.testing.assert_allclose(errors, errors[0], rtol=1e-14)
