"""Moments of placements on the host, of tables and of programs agree."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import in_turn, marked
from sources_of_placements import DTYPES, N, drawn_scores, items_of, long_rows

import jaxmetrics as jm
from jaxmetrics._base import host
from jaxmetrics._base.checks import check_items
from jaxmetrics.inference._influence import host_slopes, variance

SMOOTH = {
    "roc_auc": jm.roc_auc,
    "average_precision": jm.average_precision,
    "partial_auc": partial(jm.partial_auc, max_fpr=0.3),
    "of arrays": partial(jm.partial_auc, max_fpr=np.float32(0.375), min_tpr=jnp.float32(0.25)),
    "recall": partial(jm.recall_at_fpr, max_fpr=0.3),
    "recall, linear": partial(jm.recall_at_fpr, max_fpr=np.float32(0.25), method="linear"),
    "between": partial(jm.partial_auc, max_fpr=0.5, min_fpr=0.25, scale="mcclish"),
    # Limits that fall on steps, where the slope is that of the middle.
    "on a step": partial(jm.partial_auc, max_fpr=np.float32(0.25), min_tpr=0.5, scale="range"),
}


def _no_tables(monkeypatch):
    """Moments of concrete data come from NumPy alone."""

    def refuse(*_):
        raise AssertionError("of a table")

    monkeypatch.setattr(variance, "problems_of", refuse)


@pytest.mark.parametrize(
    "given",
    [pytest.param(("where",), marks=pytest.mark.slow), ("where", "weights")],
    ids="-".join,
)
@pytest.mark.parametrize(
    "name",
    [marked(x, fast=x in ("of arrays", "average_precision")) for x in SMOOTH],
)
def test_moments_on_host_and_of_tables_agree(name, given, monkeypatch):
    """Ties, -0.0, infinities, NaN, one class, few items, and the numbers of the closed form."""
    metric = SMOOTH[name]
    dtype = ("float32", "float64")[list(SMOOTH).index(name) % 2]

    def moments(scores, labels, options):
        items = check_items(scores, labels, options.get("weights"), options.get("where"))
        found = variance.moments_of(metric, items)
        return *found, variance.influence_values(metric, items)

    compiled = jax.jit(moments)
    rng = np.random.default_rng(5)
    for n_valid in (0, 1, 2, 2, 3, 3, *[N // 2] * 4, *[N] * 8):
        scores, (labels, options) = drawn_scores(rng, dtype), items_of(rng, given)
        options["where"] = rng.permutation(N) < n_valid
        monkeypatch.setattr(host_slopes, "_FEW", rng.choice([0, N + 1]))
        monkeypatch.setattr(host_slopes, "_PART", rng.choice([2, 64]))
        with jax.enable_x64(True), monkeypatch.context() as patch:
            table, numbers, influence = compiled(scores, labels, options)
            _no_tables(patch)
            if n_valid == N:
                del options["where"]
            host, host_numbers, of_items = moments(scores, labels, options)
        message = f"{scores} {labels} {options}"
        for found, expected in zip(jax.tree.leaves(host), jax.tree.leaves(table), strict=True):
            np.testing.assert_allclose(found, expected, 1e-10, 1e-14, err_msg=message)
        np.testing.assert_allclose(of_items, influence, 1e-10, 1e-14, err_msg=message)
        if np.isnan(host.estimate):
            continue
        both = zip(jax.tree.leaves(host_numbers), jax.tree.leaves(numbers), strict=True)
        for found, expected in both:
            np.testing.assert_allclose(found, expected, 1e-10, 1e-14, err_msg=message)


@pytest.mark.slow
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
        scores, (labels, _) = drawn_scores(rng, "int8"), items_of(rng, ())
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


@pytest.mark.parametrize("name", ["partial_auc", "on a step"])
def test_standard_errors_of_a_head_with_weights_are_those_of_all_items(name):
    """The items below the head, which are not sorted, count too."""
    rng = np.random.default_rng(8)
    n = 20_000
    labels, weights = rng.random(n) < 0.3, rng.exponential(1e200, n)
    scores = (rng.normal(size=n) + labels).round(3)

    def error(scores, labels, weights):
        return jm.standard_error(SMOOTH[name], scores, labels, weights=weights)

    with jax.enable_x64(True):
        found, expected = (f(scores, labels, weights) for f in (error, jax.jit(error)))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:there :UserWarning", "ignore:only :UserWarning")
@pytest.mark.parametrize(("name", "head"), in_turn(SMOOTH, ("whole", "head")), indirect=["head"])
def test_moments_of_batches_are_those_of_rows(name, head, monkeypatch):
    monkeypatch.setattr(host_slopes, "SHORT", 0)
    _no_tables(monkeypatch)
    rng = np.random.default_rng(7)
    scores = rng.normal(size=(3, 1, N)).astype(np.float32)
    labels, where = rng.random((2, N)) < 0.5, rng.random((1, 1, N)) < 0.8
    metric = SMOOTH[name]
    batch = jm.confidence_interval(metric, scores, labels, where=where)
    influence = jm.influence(metric, scores, labels, where=where)
    for i, j in np.ndindex(3, 2):
        row = jm.confidence_interval(metric, scores[i, 0], labels[j], where=where[0, 0])
        for end in ("estimate", "low", "high", "standard_error"):
            found = getattr(batch, end)
            assert found.shape == (3, 2)
            np.testing.assert_array_equal(found[i, j], getattr(row, end))
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


def test_slopes_of_long_rows(monkeypatch):
    """The last test, as it lets go of all programs."""
    scores, labels, weights, _ = long_rows(monkeypatch)
    weights = weights.astype(np.float32)
    slopes = jax.grad(lambda w: jnp.sum(jm.roc_auc(scores, labels, weights=w)))
    found = jax.jit(slopes)(weights)
    monkeypatch.setattr(host, "LONG", 1 << 60)
    jax.clear_caches()
    np.testing.assert_allclose(found, jax.jit(slopes)(weights), rtol=1e-6, atol=1e-8)
