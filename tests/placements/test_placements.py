"""Sources of placements agree: what NumPy sorts or selects from, and what a program does."""

import itertools
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked
from sources_of_placements import (
    DTYPES,
    LIMITED,
    OF_PLACEMENTS,
    ONE_OF_EACH_KIND,
    N,
    cut,
    drawn_scores,
    items_of,
)

import jaxmetrics as jm
from jaxmetrics._roc import host_placements
from jaxmetrics._roc.host_class import OneClass
from jaxmetrics._roc.limits import limit_of_fpr, limit_of_specificity, most_within
from jaxmetrics._roc.record import record_of
from jaxmetrics._roc.selection import highest


@cache
def _program(metric):
    return jax.jit(lambda s, y, options: metric(s, y, **options))


GIVEN = ((), ("where",), ("weights",), ("where", "weights", "amounts"))


def _cases(fast):
    """Of metrics, dtypes and what is given; `fast` of their numbers, and not of one option."""
    for g, given in enumerate(GIVEN):
        for i, entry in enumerate(OF_PLACEMENTS):
            for j, dtype in enumerate(DTYPES):
                slow = () if len(given) != 1 and fast(i, j, g) else pytest.mark.slow
                name = f"{entry.name}-{dtype}-{given}"
                yield pytest.param(entry, dtype, given, id=name, marks=slow)


def _drawn(entry, dtype, given):
    given = [x for x in given if x != "amounts" or record_of(entry.metric).amounts]
    rng = np.random.default_rng(0)
    for _ in range(12):
        yield drawn_scores(rng, dtype), *items_of(rng, given)


def _same(host, other, *items):
    assert (host.dtype, host.shape) == (other.dtype, other.shape)
    np.testing.assert_array_equal(host, other, err_msg=" ".join(map(str, items)))


@pytest.mark.parametrize(
    ("entry", "dtype", "given"), _cases(lambda i, j, g: j == 0 or (i + j) % 4 == 0)
)
def test_host_and_table_agree(entry, dtype, given, monkeypatch):
    """To the last bit of float32; ties, -0.0, infinities, NaN, one class; whole and in parts."""
    for scores, labels, options in _drawn(entry, dtype, given):
        host = entry.metric(scores, labels, **options)
        with monkeypatch.context() as patch:
            cut(patch)
            _same(host, entry.metric(scores, labels, **options), scores, labels, options)
        if "amounts" not in options:  # of a table nothing is selected
            table = jm.score_table(scores, labels, **options)
            _same(host, entry.metric(table), scores, labels, options)


@pytest.mark.parametrize(
    ("entry", "dtype", "given"), _cases(lambda i, j, g: j == 0 and (i + bool(g)) % 2 == 0)
)
def test_host_and_program_agree(entry, dtype, given):
    """Each metric has one fast program: with all that may be given, or with none of it."""
    compiled = _program(entry.metric)
    for scores, labels, options in _drawn(entry, dtype, given):
        wide = scores.astype(np.float32)  # in one program for all dtypes
        found = compiled(wide, labels, {k: jnp.asarray(v) for k, v in options.items()})
        _same(entry.metric(scores, labels, **options), found, scores, labels, options)


LIMITS = {
    "one": np.array(0.3),
    "many": np.linspace(0.01, 1, 40),
    "none": np.array([]),
    "of JAX": jnp.array([0.25, 0.7]),
    "bfloat16": jnp.array([0.25, 0.3, 0.99], jnp.bfloat16),
    "float16": np.array(0.1, np.float16),
}


def _fast_limit(turn, weighted, i):
    """One limit or many, and without weights one of the odd ones, each of which has a program."""
    return (turn + weighted) % 2 == 0 and i in (turn // 2 % 2, 2 + (turn // 2 + 1) % 4)


@pytest.mark.parametrize(
    ("turn", "weighted", "name"),
    [
        marked(turn, weighted, name, fast=_fast_limit(turn, weighted, i))
        for turn in range(len(LIMITED))
        for weighted in (False, True)
        for i, name in enumerate(LIMITS)
        if i < 2 or not weighted  # sums of weights are compared with a tolerance, and rounded
    ],
)
def test_limits(turn, weighted, name):
    """None, few and many limits, which jit may not know, in dtypes that several counts share.

    By NumPy all of them, which are those of a program that knows the limit, or does not, or those
    of a table, in turn.
    """
    metric, option = LIMITED[turn]
    rng = np.random.default_rng(5)
    n = 3000
    labels = rng.random(n) < 0.4
    options = {"weights": rng.choice([0.1, 0.2, 0.7], n) * 1e200} if weighted else {}
    options = {k: v.astype(np.float64) for k, v in options.items()}
    limit = LIMITS[name]
    with jax.enable_x64(True):
        scores = np.round(rng.normal(size=n) + labels, 2)
        host = metric(scores, labels, **options, **{option: limit})
        known = partial(metric, **options, **{option: limit})
        other = (
            lambda x: jax.jit(lambda x: metric(scores, labels, **options, **{option: x}))(x),
            lambda _: jax.jit(known)(scores, labels),
            lambda x: metric(jm.score_table(scores, labels, **options), **{option: x}),
        )[(list(LIMITS).index(name) + turn) % 3](limit)
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-12), host, other)


@pytest.mark.parametrize("weighted", [False, True])
def test_positives_that_tie_across_parts(weighted, rng, monkeypatch):
    monkeypatch.setattr(host_placements, "_PART", 3)
    scores = np.float32([0, 1, 1, 1, 1, 1, 2, 2, 3, 3, 4, 5, 5])
    weights = rng.integers(1, 9, len(scores)) / 4
    order = rng.permutation(len(scores))
    positive = OneClass(scores[order], weights[order] if weighted else None)
    placed = host_placements.placements_of(positive, OneClass(np.float32([1.5])))
    found = []
    placed.summed(lambda x: found.append((x.positives_not_below, x.positives_above)) or 0)
    not_below, above = (np.concatenate(x) for x in zip(*found, strict=True))
    each = weights if weighted else np.ones(len(scores))
    np.testing.assert_array_equal(not_below, (scores >= scores[:, None]) @ each)
    np.testing.assert_array_equal(above, (scores > scores[:, None]) @ each)


def test_results_stay_on_the_device_of_the_scores():
    rng = np.random.default_rng(7)
    scores, labels = rng.normal(size=(2, 40)).astype(np.float32), rng.random(40) < 0.4
    for device in jax.devices()[:2]:
        placed = jax.device_put(scores, device)
        for entry in OF_PLACEMENTS:
            for given in (placed, placed[0]):
                assert entry.metric(given, labels).devices() == {device}


@pytest.mark.parametrize("total", [1, 7, 999, 40_000, 10**8, 2**31 - 9])
def test_most_within(total):
    """The count is within the limit and the next is not, in the limit's own precision."""
    total = np.float64(total)
    for dtype, share in itertools.product("efd", (0.05, 0.25, 0.5, 0.9, 0.99, 1.0)):
        bound = np.array(share, dtype)
        for limit in (limit_of_fpr(bound), limit_of_specificity(bound)):
            most = most_within(limit, total, 0.0)
            assert most == np.floor(most) <= total
            rates = limit.rate(np.array([most, most + 1]), total).astype(dtype)
            assert rates[0] <= limit.bound
            assert most == total or rates[1] > limit.bound


def test_gaps_of_scores():
    """By hand: of -128 and 127 the middle is -0.5, although their difference exceeds int8."""
    for ends, dtype in (((-128, 127), "i1"), ((-(2**31), 2**31 - 1), "i4"), ((-3e38, 3e38), "f4")):
        scores, labels = np.array([*ends, 100, -50], dtype), [0, 0, 1, 1]
        recall = partial(jm.recall_at_fpr, max_fpr=0.5, method="quantile")
        for found in (recall(scores, labels), recall(scores, labels, weights=[1.0, 1, 1, 1])):
            assert found == 0.5


def test_without_compilation():
    """Under `disable_jit`, too."""
    rng = np.random.default_rng(6)
    scores, labels = rng.normal(size=(2, 40)), rng.random((2, 40)) < 0.4
    for entry in OF_PLACEMENTS:
        with jax.disable_jit():
            found = entry.metric(scores, labels)
        np.testing.assert_allclose(found, entry.metric(scores, labels), rtol=1e-6)


def test_doubles_are_not_rounded(parts):
    """Scores that float32 cannot tell apart."""
    rng = np.random.default_rng(1)
    for entry in OF_PLACEMENTS:
        for _ in range(6):
            labels, options = items_of(rng, ("where",))
            scores = 1 + rng.integers(-2, 3, N) * 1e-12
            ranks = np.unique(scores, return_inverse=True)[1].astype(np.float32)
            if entry.rank_only and not entry.threshold:
                found = [entry.metric(x, labels, **options) for x in (scores, ranks)]
                np.testing.assert_array_equal(*found)


@ONE_OF_EACH_KIND
def test_doubles_have_the_digits_of_a_program(entry, parts, x64):
    """Of which NumPy and the program take the same way for all metrics."""
    rng = np.random.default_rng(1)
    compiled = jax.jit(entry.metric)
    for _ in range(6):
        labels, options = items_of(rng, ("where",))
        scores = 1 + rng.integers(-2, 3, N) * 1e-12
        found, wanted = (f(scores, labels, **options) for f in (entry.metric, compiled))
        np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("method", ["inverted_cdf", "lower", "linear"])
def test_quantiles_beside_infinities(method):
    """By hand: of negatives -inf, 0, 1, 2, inf the value at 3/4 is 2, which inf does not reach."""
    scores, labels = [-np.inf, 0, 1, 2, np.inf, 1.5, 3], [0, 0, 0, 0, 0, 1, 1]
    recall = partial(jm.recall_at_fpr, max_fpr=0.25, method="quantile", quantile_method=method)
    for found in (recall(scores, labels), jax.jit(recall)(jnp.array(scores), jnp.array(labels))):
        assert found == 0.5


def test_a_quantile_between_a_number_and_infinity():
    scores, labels = [-np.inf, 0, 1, 2, np.inf, 1.5, 3], [0, 0, 0, 0, 0, 1, 1]
    between = partial(jm.recall_at_fpr, max_fpr=0.1, method="quantile", quantile_method="linear")
    for found in (between(scores, labels), jax.jit(between)(jnp.array(scores), jnp.array(labels))):
        assert np.isnan(found)


@pytest.mark.parametrize("lowest", [1.0, 1e13])  # also if it is lost in the sum
def test_the_lowest_quantile_of_heavy_negatives_is_one_of_them(lowest):
    """At 1e13 copies, the slack of a place exceeds a copy; below the negatives, all is flagged."""
    scores, labels = np.array([-1.0, 0.1, 0.2, 0.6, 0.5]), np.array([1, 1, 0, 0, 0])
    weights = np.array([1e13, 1e13, 0, 1e13, lowest])

    def threshold(scores, labels):
        at = {"weights": weights, "max_fpr": 1.0, "method": "quantile"}
        return jm.threshold_at_fpr(scores, labels, **at)

    found = jax.jit(threshold)(scores, labels), threshold(np.tile(scores, (9, 1)), labels)[0]
    np.testing.assert_array_equal(found, threshold(scores, labels))
    assert found[0] == np.float32(0.5)


def test_thresholds_of_several_specificities_in_a_program():
    """The lowest positive above 2 of 4 negatives, and above all of them."""
    scores, labels = jnp.arange(8.0), jnp.array([0, 0, 1, 0, 1, 0, 1, 1])
    metric = partial(jm.sensitivity_at_specificity, return_threshold=True)
    found = jax.jit(lambda *x: metric(*x, min_specificity=jnp.array([0.5, 1])))(scores, labels)
    np.testing.assert_array_equal(found, [[1, 0.5], [2, 6]])


@pytest.mark.parametrize("library", [np, jnp])
def test_the_highest_scores_of_some_items(library, x64):
    scores, which = np.array([5, 1, 4, 9, 3], np.float32), np.array([1, 1, 1, 0, 1], bool)
    found = highest(*map(library.asarray, (scores, which, np.array([0, 3, 1]))))
    assert found.tolist() == [5, 1, 4]
