"""Sources of placements agree: what NumPy sorts or selects from, selections in `jit`, tables.

So do the moments that NumPy adds up from slopes in placements with those of a table.
"""

import itertools
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import in_turn, marked

import jaxmetrics as jm
from jaxmetrics._base import compaction, host, merging, sorting
from jaxmetrics._base.checks import check_items
from jaxmetrics._roc import host_batches, host_placements, record, selection
from jaxmetrics._roc.limits import limit_of_fpr, limit_of_specificity, most_within
from jaxmetrics._roc.record import record_of
from jaxmetrics.inference._influence import host_slopes, variance
from tests.registry import FIRST, METRICS

OF_PLACEMENTS = [x for x in METRICS if record_of(x.metric).of_placements is not None]
N = 13
DTYPES = ("float32", "float16", "bfloat16", "int8", "bool")


def cut(monkeypatch):
    """Short rows are cut into parts, and merged, as long ones are."""
    monkeypatch.setattr(sorting, "MANY", 2)
    monkeypatch.setattr(sorting, "processors", lambda: 3)
    for name, size in (("_SMALL", 0), ("_BLOCK", 3), ("_SPARSE", 4)):
        monkeypatch.setattr(merging, name, size)
    monkeypatch.setattr(host_placements, "_FEW_ITEMS", 0)
    monkeypatch.setattr(host_placements, "_PART", 3)
    monkeypatch.setattr(host_placements, "_BLOCK", 1)


@pytest.fixture(params=["whole", "parts"])
def parts(request, monkeypatch):
    if request.param == "parts":
        cut(monkeypatch)


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
        yield _scores(rng, dtype), *_items(rng, given)


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


LIMITED = [  # metrics, and the option that is their limit
    (partial(jm.recall_at_fpr, method="step"), "max_fpr"),
    (partial(jm.recall_at_fpr, method="linear"), "max_fpr"),
    (partial(jm.recall_at_fpr, method="quantile"), "max_fpr"),
    (partial(jm.threshold_at_fpr, method="step"), "max_fpr"),
    (partial(jm.threshold_at_fpr, method="linear"), "max_fpr"),
    (partial(jm.threshold_at_fpr, method="quantile"), "max_fpr"),
    (jm.sensitivity_at_specificity, "min_specificity"),
    (partial(jm.sensitivity_at_specificity, return_threshold=True), "min_specificity"),
    (jm.partial_auc, "max_fpr"),
]


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
            labels, options = _items(rng, ("where",))
            scores = 1 + rng.integers(-2, 3, N) * 1e-12
            ranks = np.unique(scores, return_inverse=True)[1].astype(np.float32)
            if entry.rank_only and not entry.threshold:
                found = [entry.metric(x, labels, **options) for x in (scores, ranks)]
                np.testing.assert_array_equal(*found)


ONE_OF_EACH_KIND = pytest.mark.parametrize(
    "entry", [marked(x, fast=x.name in FIRST) for x in OF_PLACEMENTS], ids=lambda x: x.name
)


@ONE_OF_EACH_KIND
def test_doubles_have_the_digits_of_a_program(entry, parts, x64):
    """Of which NumPy and the program take the same way for all metrics."""
    rng = np.random.default_rng(1)
    compiled = jax.jit(entry.metric)
    for _ in range(6):
        labels, options = _items(rng, ("where",))
        scores = 1 + rng.integers(-2, 3, N) * 1e-12
        found, wanted = (f(scores, labels, **options) for f in (entry.metric, compiled))
        np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-15)


WITH_HEAD = {
    "area": jm.partial_auc,
    "corner": partial(jm.partial_auc, min_fpr=0.03, min_tpr=0.2, scale="mcclish"),
    "recall": partial(jm.recall_at_fpr, method="linear"),
}


HEADS = {"few": (1, 99, 70), "fitting": (4, 16, 71), "whole": (99, 16, 72)}


@pytest.fixture(params=HEADS)
def n_of_heads(request, monkeypatch):
    """Short rows have a head: it always fits, or sometimes, or never. A number of items for each.

    A compiled program is kept for its shape. The sample is all items, or often too small.
    """
    part, sample, n = HEADS[request.param]
    monkeypatch.setattr(host, "LONG", 0)
    monkeypatch.setattr(host_placements, "_FEW_ITEMS", 0)
    monkeypatch.setattr(selection, "_SAMPLE", sample)
    monkeypatch.setattr(selection, "_MARGIN", 0)
    monkeypatch.setattr(selection, "_PART", part)
    return n


def _with_head(rng, n, dtype):
    values = rng.choice([3, 9, 100, 10**6])
    scores = rng.integers(0, values, n) * 100 / values
    odd = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan], n, p=[0.3, 0.3, 0.2, 0.19, 0.01])
    if dtype not in ("int8", "bool"):
        scores = np.where(rng.random(n) < 0.2, odd, scores)
    labels = rng.random(n) < rng.choice([0.0, 0.1, 0.5, 1.0], p=[0.1, 0.5, 0.3, 0.1])
    return scores.astype(jnp.dtype(dtype)), labels, rng.random(n) < rng.choice([0.2, 0.9])


@pytest.mark.parametrize(
    ("name", "n_of_heads", "kind"),
    [
        marked(name, head, kind, fast=i == j == kind or (i, j, kind) == (0, 1, 3))
        for i, name in enumerate(WITH_HEAD)
        for j, head in enumerate(HEADS)
        for kind in range(4)
    ],
    indirect=["n_of_heads"],
)
def test_heads(name, n_of_heads, kind):
    """Only the items above the end of a window are sorted, or all where these are too many."""
    metric = WITH_HEAD[name]
    rng = np.random.default_rng(5)
    few, several = np.float32([0.1, 0.6]), np.float32([[0.05, 0.3]])
    compiled = jax.jit(lambda *x: metric(*x[:2], where=x[2], max_fpr=x[3]))
    kinds = (
        ("float32", few, False),
        ("float32", several, True),
        ("float16", few, True),
        ("int8", few, False),
    )
    dtype, limits, masked = kinds[kind]
    for limit in [*limits] * 4:
        scores, labels, where = _with_head(rng, n_of_heads, dtype)
        given = scores, labels, where if masked else None, limit
        on_host = metric(*given[:2], where=given[2], max_fpr=limit)
        np.testing.assert_array_equal(on_host, compiled(*given), err_msg=f"{given}")


@pytest.mark.parametrize(
    ("name", "n_of_heads"),
    [
        marked(name, head, fast=i == j == 0)
        for i, name in enumerate(WITH_HEAD)
        for j, head in enumerate(HEADS)
    ],
    indirect=["n_of_heads"],
)
def test_heads_of_doubles(name, n_of_heads, x64):
    metric = partial(WITH_HEAD[name], max_fpr=0.1)
    rng = np.random.default_rng(6)
    compiled = jax.jit(metric)
    for _ in range(5):
        scores, labels, _ = _with_head(rng, n_of_heads, "float64")
        scores = 1 + scores * 1e-12
        host = metric(scores, labels)
        np.testing.assert_allclose(host, compiled(scores, labels), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
    "n_of_heads", [marked(x, fast=x == "fitting") for x in HEADS], indirect=True
)
def test_heads_of_amounts(n_of_heads):
    rng = np.random.default_rng(7)
    recall = partial(jm.recall_at_fpr, max_fpr=0.1, method="linear")
    amounts = rng.choice([0.0, 1, 7], (2, n_of_heads)).astype(np.float32)
    for _ in range(5):
        scores, labels, where = _with_head(rng, n_of_heads, "float32")
        found = jax.jit(recall)(scores, labels, where=where, amounts=amounts)
        np.testing.assert_array_equal(recall(scores, labels, where=where, amounts=amounts), found)


@pytest.mark.parametrize(
    ("name", "n_of_heads"),
    [marked(name, "fitting", fast=name == "recall") for name in WITH_HEAD]
    + [marked("area", "few", fast=False), marked("recall", "whole", fast=False)],
    indirect=["n_of_heads"],
)
def test_heads_of_batches(name, n_of_heads):
    """Also where `vmap` makes the batch, each row takes its own branch."""
    metric = WITH_HEAD[name]
    rng = np.random.default_rng(8)
    rows = [_with_head(rng, n_of_heads, "float32") for _ in range(6)]
    scores, labels, where = (np.stack(x) for x in zip(*rows, strict=True))
    one, row = jax.jit(partial(metric, max_fpr=0.1)), partial(metric, max_fpr=0.1)  # by NumPy
    wanted = np.array([row(s, y, where=m) for s, y, m in zip(scores, labels, where, strict=True)])
    mapped = jax.jit(jax.vmap(lambda s, y, m: metric(s, y, where=m, max_fpr=0.1)))
    mapped = mapped.lower(scores, labels, where)
    np.testing.assert_array_equal(mapped.compile()(scores, labels, where), wanted)
    assert "stablehlo.case" in mapped.as_text()
    shaped = one(scores.reshape(2, 3, -1), labels[:3], where=where[:1])
    crossed = [
        [row(s, y, where=where[0]) for s, y in zip(x, labels, strict=False)]
        for x in scores.reshape(2, 3, -1)
    ]
    np.testing.assert_array_equal(shaped, np.array(crossed))
    assert one(scores[:0], labels[0]).shape == (0,)


@pytest.mark.slow
@pytest.mark.parametrize("n_of_heads", ["fitting"], indirect=True)
def test_derivatives_of_heads(n_of_heads):
    """In the limit: forward, backward, twice and batched, as those of a table."""
    rng = np.random.default_rng(10)
    scores, labels, where = _with_head(rng, n_of_heads, "float32")
    scores = np.nan_to_num(scores)
    table = jm.score_table(scores, labels, where=where)
    limits = jnp.array([0.1, 0.2, 0.7])

    def of_items(max_fpr):
        return jm.partial_auc(jnp.asarray(scores), labels, where=where, max_fpr=max_fpr)

    def of_table(max_fpr):
        return jm.partial_auc(table, max_fpr=max_fpr)

    for derivative in (jax.grad, jax.hessian):
        found, wanted = (jax.jit(jax.vmap(derivative(f)))(limits) for f in (of_items, of_table))
        assert np.isfinite(wanted).all()
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    slopes = jax.jit(jax.grad(lambda s: jm.partial_auc(s, labels, max_fpr=0.1)))(scores)
    np.testing.assert_array_equal(slopes, np.zeros_like(scores))


OF_LONG_ROWS = {
    "parts": partial(jm.precision_at_recall, min_recall=0.5, return_threshold=True),
    "limits": partial(jm.threshold_at_fpr, max_fpr=np.float32([0.1, 0.5])),
}


def _long_rows(monkeypatch):
    monkeypatch.setattr(host, "LONG", 0)
    rng = np.random.default_rng(11)
    shape, n = (2, 3), 17
    scores = rng.integers(0, 9, (*shape, n)).astype(np.float32)
    labels, where = rng.random((3, n)) < 0.5, rng.random((2, 1, n)) < 0.8
    return scores, labels, rng.integers(1, 9, (*shape, n)) / 4, where


@pytest.mark.parametrize(
    ("name", "way"),
    [
        marked(name, way, fast=way in ("eager", kind))
        for name, kind in (("parts", "jit"), ("limits", "vmap"))
        for way in ("eager", "jit", "vmap")
    ],
)
def test_rows_in_turn(name, way, monkeypatch):
    """Long rows of a batch are taken one by one: of tables too, of results with several parts."""
    scores, labels, weights, where = _long_rows(monkeypatch)
    of = partial(lambda f, s, y, w, m: f(s, y, weights=w, where=m), OF_LONG_ROWS[name])
    items = (*np.broadcast_arrays(scores, labels), weights, where)
    whole = [np.broadcast_to(x, scores.shape).reshape(6, -1) for x in items]
    each = [of(*row) for row in zip(*whole, strict=True)]
    each = jax.tree.map(lambda *x: np.stack(x).reshape(2, 3, *x[0].shape), *each)
    given = scores, labels, weights.astype(np.float32), where
    ways = {"eager": of, "jit": jax.jit(of), "vmap": jax.jit(jax.vmap(of, (0, None, 0, 0)))}
    jax.tree.map(np.testing.assert_array_equal, ways[way](*given), each)


@pytest.mark.parametrize("name", [marked(x, fast=x == "limits") for x in OF_LONG_ROWS])
def test_long_rows_that_share_scores(name, monkeypatch):
    """One order of the scores for all."""
    scores, labels, weights, where = _long_rows(monkeypatch)
    of = partial(lambda f, s, y, w, m: f(s, y, weights=w, where=m), OF_LONG_ROWS[name])
    tied = scores[0, 0], labels, weights[0], where[0]
    jax.tree.map(np.testing.assert_array_equal, jax.jit(of)(*tied), of(*tied))


@pytest.mark.parametrize(
    ("name", "empty"),
    [
        marked(name, empty, fast=(name, empty) in (("parts", (0, 3)), ("limits", (2, 0))))
        for name in OF_LONG_ROWS
        for empty in ((0, 3), (2, 0))
    ],
)
def test_no_long_rows(name, empty, monkeypatch):
    scores, labels, _, _ = _long_rows(monkeypatch)
    x = scores[: empty[0], : empty[1]]
    assert jax.tree.leaves(OF_LONG_ROWS[name](x, labels[0]))[0].shape[:2] == empty


@pytest.mark.parametrize("n", [marked(n, fast=n in (1, 33)) for n in (1, 31, 32, 33, 300)])
def test_first_indices(n):
    rng = np.random.default_rng(10)
    first = jax.jit(compaction.first_indices, static_argnums=1)
    for share in (0.0, 0.03, 0.5, 1.0):
        mask = rng.random(n) < share
        for capacity in (1, 7, n):
            index, some = map(np.asarray, first(mask, capacity))
            wanted = np.flatnonzero(mask)[:capacity]
            np.testing.assert_array_equal(index[some], wanted)
            assert np.all((index >= 0) & (index < n))


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
    """Leading axes broadcast."""
    monkeypatch.setattr(record, "_SHORT", 0)
    monkeypatch.setattr(record, "_SHORT_UNSORTED", 0)
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(3, 1, N)).astype(np.float32)
    labels, where = rng.random((2, N)) < 0.5, rng.random((1, 1, N)) < 0.8
    for entry in OF_PLACEMENTS:
        batch = entry.metric(scores, labels, where=where)
        rows = [[entry.metric(s[0], y, where=where[0, 0]) for y in labels] for s in scores]
        np.testing.assert_array_equal(batch, np.array(rows))


@ONE_OF_EACH_KIND
def test_batches_may_be_empty(entry, parts, monkeypatch):
    monkeypatch.setattr(record, "_SHORT", 0)
    monkeypatch.setattr(record, "_SHORT_UNSORTED", 0)
    scores, labels = np.zeros((3, 1, N), np.float32), np.arange(2 * N).reshape(2, N) % 3 == 0
    some = entry.metric(scores, labels)
    assert entry.metric(scores[:0], labels).shape == (0, *some.shape[1:])


@pytest.fixture(params=["at once", "in blocks"])
def shared(request, monkeypatch):
    """A metric of rows that share labels, which are not taken one by one."""
    monkeypatch.setattr(host_batches, "_SHORTEST", 0)
    if request.param == "in blocks":
        for name, size in (("_AT_ONCE", 2 * N), ("_PART", 5), ("_MANY", 0), ("_FEW", 2)):
            monkeypatch.setattr(host_batches, name, size)

    def value(metric, *args, **options):
        with monkeypatch.context() as patch:
            patch.setattr(record, "evaluate_on_host", None)
            patch.setattr(record, "evaluate_by_selection", None)
            patch.setattr(record, "evaluate", None)
            return metric(*args, **options)

    return value


@pytest.mark.parametrize(
    ("shared", "entry", "dtype"),
    [  # float32 in one way, and one of the others in the other way
        pytest.param(
            way,
            entry,
            dtype,
            id=f"{way}-{entry.name}-{dtype}",
            marks=() if j == ((i // 2 % 4 + 1) if (i + k) % 2 else 0) else pytest.mark.slow,
        )
        for k, way in enumerate(("at once", "in blocks"))
        for i, entry in enumerate(OF_PLACEMENTS)
        for j, dtype in enumerate(DTYPES)
    ],
    indirect=["shared"],
)
def test_models_that_share_labels_are_rows(entry, dtype, shared):
    """Ties, -0.0, infinities, NaN in some rows, one class, masks that leave no item."""
    rng = np.random.default_rng(6)
    for turn in range(8):
        scores = np.stack([_scores(rng, dtype) for _ in range(6)]).reshape(3, 2, N)
        labels, options = _items(rng, ("where",) if turn % 2 else ())
        if turn == 7:
            options["where"] = np.zeros(N, bool)
        batch = shared(entry.metric, scores, labels, **options)
        rows = [[entry.metric(x, labels, **options) for x in pair] for pair in scores]
        np.testing.assert_array_equal(batch, np.array(rows), err_msg=f"{scores} {labels}")


@pytest.mark.parametrize("turn", range(len(LIMITED)))
def test_limits_of_models_that_share_labels(turn, shared, x64):
    metric, name = LIMITED[turn]
    rng = np.random.default_rng(7)
    labels = rng.random(400) < 0.4
    scores = np.round(rng.normal(size=(3, 400)) + labels, 1)
    scores[2, 7] = np.nan
    for limit in (np.array(0.3), np.array([]), np.array([0.2, 0.5]), np.linspace(0.01, 1, 40)):
        batch = shared(metric, scores, labels, **{name: limit})
        rows = [metric(x, labels, **{name: limit}) for x in scores]
        rows = jax.tree.map(lambda *x: np.stack(x), *rows)
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-14), batch, rows)


def test_models_with_ties_at_the_end_of_the_window(shared):
    """Negatives that tie with the last one of the window count whole."""
    scores = np.array([[3.0, 2, 2, 2, 2, 1, 1, 1, 1, 1, 0, 0, 2, 3, 0], np.arange(15.0) % 4])
    labels = np.arange(15) >= 12
    for max_fpr in (0.1, 0.2, 0.3):
        found = shared(jm.partial_auc, scores, labels, max_fpr=max_fpr)
        expected = [jm.partial_auc(jm.score_table(x, labels), max_fpr=max_fpr) for x in scores]
        np.testing.assert_allclose(found, expected, rtol=1e-6)


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


@pytest.fixture(params=["whole", "head"])
def head(request, monkeypatch):
    """Few items, too, are cut to the head that counts, and into parts, as many are."""
    if request.param == "head":
        monkeypatch.setattr(host_slopes, "_FEW", 0)
        monkeypatch.setattr(host_slopes, "_PART", 2)


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
        scores, (labels, options) = _scores(rng, dtype), _items(rng, given)
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
@pytest.mark.parametrize(("name", "head"), in_turn(SMOOTH, ("whole", "head")), indirect=["head"])
def test_moments_of_batches_are_those_of_rows(name, head, monkeypatch):
    monkeypatch.setattr(host_slopes, "_SHORT", 0)
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
    scores, labels, weights, _ = _long_rows(monkeypatch)
    weights = weights.astype(np.float32)
    slopes = jax.grad(lambda w: jnp.sum(jm.roc_auc(scores, labels, weights=w)))
    found = jax.jit(slopes)(weights)
    monkeypatch.setattr(host, "LONG", 1 << 60)
    jax.clear_caches()
    np.testing.assert_allclose(found, jax.jit(slopes)(weights), rtol=1e-6, atol=1e-8)
