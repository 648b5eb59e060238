"""Functions of every room under each mode of JAX: the same values, or an exception written here."""

import contextlib
from functools import cache, partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import in_turn, marked
from mesh_cases import CASES

import jaxmetrics as jm
from jaxmetrics import extreme, losses, sklearn, streaming

pytestmark = [
    pytest.mark.filterwarnings("ignore:there are only"),
]

N = 24
LABELS = jnp.arange(N) % 3 == 0
SCORES = jnp.sin(jnp.arange(N) ** 2.0) + LABELS
MODELS = jnp.stack([SCORES, jnp.roll(SCORES, 1)])
CLASSES = jnp.arange(N) % 3
COLUMNS = jnp.sin(jnp.arange(3 * N) ** 2.0).reshape(N, 3) + (CLASSES[:, None] == jnp.arange(3))
WEIGHTS = jnp.ones(N)
FEW = {"key": jax.random.key(0), "n_resamples": 20}
RECALL = partial(jm.recall_at_fpr, max_fpr=0.2)
WILSON = partial(jm.confidence_interval, RECALL, SCORES, LABELS, method="wilson", **FEW)
BINS = streaming.uniform_bins(16, low=-3.0, high=3.0)


def of_stream(function, scores=SCORES, **options):
    state = streaming.update(streaming.init(BINS), scores, LABELS, bins=BINS)
    return function(state=state, bins=BINS, **options)


FUNCTIONS = {
    "roc_auc": partial(jm.roc_auc, SCORES, LABELS, weights=WEIGHTS),
    "roc_curve": partial(jm.roc_curve, SCORES, LABELS),
    "threshold_at_fpr": partial(jm.threshold_at_fpr, SCORES, LABELS, max_fpr=0.2),
    "one_vs_rest": partial(jm.one_vs_rest(jm.roc_auc), COLUMNS, CLASSES, weights=WEIGHTS),
    "one_vs_rest, weighted": partial(jm.one_vs_rest(jm.roc_auc, "weighted"), COLUMNS, CLASSES),
    "one_vs_one": partial(jm.one_vs_one(jm.roc_auc), COLUMNS, CLASSES),
    "multilabel": partial(jm.multilabel(jm.roc_auc), COLUMNS, COLUMNS[::-1] > 0.5),
    "matthews_corrcoef": partial(jm.matthews_corrcoef, CLASSES, CLASSES[::-1], weights=WEIGHTS),
    "ndcg": partial(jm.ndcg, COLUMNS.T, LABELS.astype(float)),
    "segment_roc_auc": partial(jm.segment_roc_auc, SCORES, LABELS, segments=jnp.arange(N) // 12),
    "extreme": partial(extreme.precision_at_k, CLASSES[:, None], CLASSES[:, None], k=1),
    "loss": partial(losses.pairwise_auc_loss, SCORES, LABELS, weights=WEIGHTS),
    "sklearn": partial(sklearn.roc_auc_score, LABELS, SCORES),
    "covariance": partial(jm.covariance, jm.roc_auc, MODELS, LABELS),
    "closed form": partial(jm.confidence_interval, jm.roc_auc, SCORES, LABELS),
    "closed form of precision": partial(
        jm.confidence_interval, jm.average_precision, SCORES, LABELS
    ),
    "closed form of recall": partial(jm.confidence_interval, RECALL, SCORES, LABELS),
    "influence of recall": partial(jm.influence, RECALL, SCORES, LABELS),
    "covariance of recall": partial(jm.covariance, RECALL, MODELS, LABELS),
    "clusters": partial(
        jm.confidence_interval, jm.roc_auc, SCORES, LABELS, clusters=np.arange(N) // 4
    ),
    "wilson": WILSON,
    "bootstrap": partial(jm.bootstrap, jm.roc_auc, SCORES, LABELS, **FEW, stratify=False),
    "bootstrap_mean": partial(jm.bootstrap_mean, SCORES, **FEW),
    "roc_band": partial(jm.roc_band, SCORES, LABELS),
    "roc_band, weighted": partial(jm.roc_band, SCORES, LABELS, weights=WEIGHTS),
    "compare": partial(jm.compare, jm.roc_auc, MODELS, LABELS),
    "operating_point": partial(jm.operating_point, SCORES, LABELS, max_fpr=0.2, amounts=WEIGHTS),
    "operating_point, chosen": partial(
        jm.operating_point, SCORES, LABELS, fp_cost=1.0, fn_cost=2.0, amounts=WEIGHTS, **FEW
    ),
    "operating_point, elsewhere": partial(
        jm.operating_point, MODELS, LABELS, fp_cost=1.0, fn_cost=2.0, prevalence=0.1, **FEW
    ),
    "operating_point, precise": partial(
        jm.operating_point, MODELS, LABELS, min_precision=0.2, prevalence=0.1, **FEW
    ),
    "sample_size": partial(jm.sample_size, jm.roc_auc, MODELS, LABELS, difference=0.1),
    "permutation_test": partial(jm.permutation_test, jm.roc_auc, MODELS, LABELS, **FEW),
    "streaming.bounds": partial(of_stream, partial(streaming.bounds, jm.roc_auc)),
    "streaming.interval": partial(of_stream, partial(streaming.interval, jm.roc_auc)),
    "streaming.bootstrap": partial(of_stream, partial(streaming.bootstrap, jm.roc_auc), **FEW),
}


@contextlib.contextmanager
def strict():
    """All that raises at once, as each mode compiles anew."""
    with (
        jax.numpy_dtype_promotion("strict"),
        jax.numpy_rank_promotion("raise"),
        jax.debug_nans(True),
        np.errstate(all="raise"),
    ):
        yield


MODES = {"strict": strict, "x64": partial(jax.enable_x64, True)}
# These compile anew, as JAX looks for leaks only while it traces.
LEAKING = ("roc_auc", "one_vs_one", "loss", "closed form")
# Other rules of a point: what they are made of is fast.
SLOW = ("operating_point, elsewhere", "operating_point, precise")
# What a function refuses under a mode, and its words. None as yet.
EXCEPTIONS: dict[tuple[str, str], str] = {}


@pytest.fixture(scope="module")
def expected():
    return cache(lambda name: FUNCTIONS[name]())


def close(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(np.asarray(x, float), np.asarray(y, float), 1e-4, 1e-5)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        *in_turn([x for x in FUNCTIONS if x not in SLOW], MODES),
        *(marked(*x, fast=False) for x in product(SLOW, MODES)),
    ],
)
def test_the_same_under_every_mode(name, mode, expected):
    wanted = expected(name)
    with MODES[mode]():
        if (name, mode) in EXCEPTIONS:
            with pytest.raises((TypeError, ValueError), match=EXCEPTIONS[name, mode]):
                FUNCTIONS[name]()
            return
        found = FUNCTIONS[name]()
    close(found, wanted)


@pytest.mark.parametrize(
    "name",
    [
        marked(name, fast=name in ("covariance", "prediction_powered_interval", "streaming.merge"))
        for name, case in CASES.items()
        if case.traced
    ],
)
def test_programs_are_traced_under_strict_promotion(name):
    arrays = [jnp.asarray(x) for x in CASES[name].arrays()]
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        jax.jit(CASES[name].function).trace(*arrays)
        if name == "kl_partial_auc":  # whose slots are checked where they are known
            CASES[name].function(*arrays)


@pytest.mark.parametrize(
    "name",
    [marked(name, fast=name == "accuracy") for name, case in CASES.items() if case.traced],
)
def test_programs_keep_no_tracers(name):
    arrays = [jnp.asarray(x) for x in CASES[name].arrays()]
    jax.clear_caches()
    with jax.checking_leaks():
        jax.jit(CASES[name].function).trace(*arrays)


@pytest.mark.parametrize("name", LEAKING)
def test_no_tracer_leaks(name, expected):
    wanted = expected(name)
    with jax.checking_leaks():
        close(FUNCTIONS[name](), wanted)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_derivatives_leak_no_tracer(wrap):
    slopes = wrap(jax.grad(lambda w: jm.roc_auc(SCORES, LABELS, weights=w)))
    wanted = slopes(WEIGHTS)
    jax.clear_caches()
    with jax.checking_leaks():
        close(slopes(WEIGHTS), wanted)


def test_the_operation_on_an_undefined_value_raises_under_debug_nans():
    with jax.debug_nans(True):
        value = jm.roc_auc(SCORES, WEIGHTS > 0)
        with pytest.raises(FloatingPointError):
            value + 1
    assert np.isnan(value)


NO_ITEMS, SECOND_HALF = WEIGHTS < 0, jnp.arange(N) >= N // 2
UNDEFINED = {
    "segments": partial(
        jm.segment_roc_auc, SCORES, LABELS & SECOND_HALF, segments=jnp.arange(N) // 12
    ),
    "partial areas of segments": partial(
        jm.segment_partial_auc, SCORES, LABELS, segments=jnp.arange(N), max_fpr=0.5
    ),
    "one_vs_one": partial(jm.one_vs_one(jm.roc_auc, None), COLUMNS, CLASSES * 0),
    "loss": partial(losses.pairwise_auc_loss, SCORES.at[0].set(jnp.nan), LABELS),
    "cross_entropy": partial(jm.training.cross_entropy, SCORES, LABELS, where=NO_ITEMS),
    "its slopes": partial(
        jax.grad(jm.training.cross_entropy), SCORES, LABELS.astype(float), where=NO_ITEMS
    ),
    "folds": partial(jm.fold_interval, jm.roc_auc, SCORES, LABELS & SECOND_HALF, SECOND_HALF * 1),
    "compare_to_value": partial(jm.compare_to_value, jm.roc_auc, SCORES, LABELS | True, value=0.5),
    "empty slots": partial(losses.kl_partial_auc.init, 3),
    "the lowest bin": partial(of_stream, streaming.table, SCORES - 3),
    "bootstrap": partial(jm.bootstrap, jm.roc_auc, SCORES, LABELS | True, **FEW),
}


@pytest.mark.filterwarnings("ignore:.*undefined", "ignore:.*NaN")
@pytest.mark.parametrize("name", UNDEFINED)
def test_nan_and_infinity_are_values_where_jax_looks_for_them(name):
    wanted = UNDEFINED[name]()
    with jax.debug_nans(True), jax.debug_infs(True):
        found = UNDEFINED[name]()
    close(found, wanted)


def test_numbers_that_underflow_float32_where_numpy_raises():
    perfect = np.float32(LABELS)
    with np.errstate(all="raise"):
        error = jm.standard_error(partial(jm.partial_auc, max_fpr=0.3), perfect, LABELS)
        band = jm.roc_band(np.zeros(N), LABELS, fpr=np.arange(11) / 10)
    assert error < 1e-6
    assert band.low[0] == 0


def test_resamples_have_no_derivative():
    def low(weights):
        return WILSON(weights=weights).low

    for function in (low, jax.jit(low)):
        with pytest.raises(TypeError, match=r"no derivative: write jax\.lax\.stop_gradient"):
            jax.grad(function)(WEIGHTS)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["low", "high"])
@pytest.mark.parametrize("clusters", [None, np.arange(N) // 2], ids=["auto", "clusters"])
def test_derivative_of_an_interval(end, clusters, x64):
    def limit(weights):
        found = jm.confidence_interval(
            jm.roc_auc, SCORES, LABELS, weights=weights, clusters=clusters
        )
        return getattr(found, end)

    at = jnp.asarray(np.linspace(0.5, 1.5, N))
    step = jnp.zeros(N).at[3].set(1e-5)
    slope = (limit(at + step) - limit(at - step)) / 2e-5
    np.testing.assert_allclose(jax.grad(limit)(at)[3], slope, rtol=1e-6)


def of_rows(function, **options):
    return lambda scores, labels, weights: function(jnp.stack([scores, -scores]), labels, **options)


# Of traced scores, and of NumPy's arrays that a program may have as constants.
OF_CONSTANTS = {
    "roc_auc": lambda scores, labels, weights: jm.roc_auc(scores, labels, weights=weights),
    "limits": lambda scores, labels, weights: jm.partial_auc(scores, labels, max_fpr=weights[:3]),
    "table": lambda scores, labels, weights: jm.roc_auc(jm.ScoreTable(weights, labels, weights)),
    "accuracy": lambda scores, labels, weights: jm.accuracy(scores > 0, labels, weights=weights),
    "ndcg": lambda scores, labels, weights: jm.ndcg(scores, labels, segments=labels),
    "loss": lambda scores, labels, weights: losses.pairwise_auc_loss(
        scores, labels, weights=weights
    ),
    "multilabel": lambda scores, labels, weights: jm.multilabel(jm.roc_auc)(
        scores[:, None], labels[:, None]
    ),
    "label_deciles": lambda scores, labels, weights: extreme.label_deciles(labels),
    "precision_at_k": lambda scores, labels, weights: extreme.precision_at_k(
        labels[:, None], labels[:, None], k=1
    ),
    "update": lambda scores, labels, weights: streaming.update(
        streaming.init(BINS, weighted=True), scores, labels, weights=weights, bins=BINS
    ),
    "standard_error": lambda scores, labels, weights: jm.standard_error(jm.roc_auc, scores, labels),
    "bootstrap_mean": lambda scores, labels, weights: jm.bootstrap_mean(weights, **FEW).estimate,
    "compare": of_rows(partial(jm.compare, jm.roc_auc)),
    "permutation_test": of_rows(partial(jm.permutation_test, jm.roc_auc), **FEW),
}


@pytest.mark.parametrize(
    ("name", "first", "how"),
    [
        *in_turn(
            [x for x in OF_CONSTANTS if x != "compare"], ("user", "library"), ("jit", "eager")
        ),
        marked("compare", "user", "jit", fast=False),  # standard errors have the same constants
    ],
)
def test_an_array_of_numpy_is_a_constant_of_programs_in_either_mode(name, first, how):
    """JAX keeps one buffer of the object while a program with it lives, in 32 or in 64 bits."""
    labels, weights = np.array(LABELS, np.int64), np.arange(1, N + 1) / 32

    def of_library(scores):
        return jax.tree.leaves(OF_CONSTANTS[name](scores, labels, weights))

    def of_user(scores):
        return jnp.sum(scores) + jnp.sum(labels) + jnp.sum(weights)

    functions = [of_user, of_library] if first == "user" else [of_library, of_user]
    program = jax.jit(functions[0])  # lives to the end
    jax.block_until_ready(program(SCORES))
    found = (jax.jit(functions[1]) if how == "jit" else functions[1])(SCORES)
    labels, weights = labels.copy(), weights.copy()  # objects that no program has
    close(found, functions[1](SCORES))


LIBRARIES = {"numpy": np, "jax": jnp}


@pytest.mark.parametrize(
    ("given", "name"),
    [
        marked(x, name, fast=x == "weights" and name == "jax")
        for x in ("clusters", "weights")
        for name in LIBRARIES
    ],
)
def test_labels_may_be_known_while_scores_are_traced(given, name):
    """The usual evaluation of a training loop, whose labels are a constant of the program."""
    library = LIBRARIES[name]
    labels = library.asarray(LABELS)
    ids = {"clusters": np.arange(N) // 2}
    options = ids if given == "clusters" else {"weights": library.asarray(1 + np.arange(N) % 3)}

    def low(scores):
        interval = jm.confidence_interval(jm.roc_auc, scores, labels, **options)
        both = jm.compare(jm.roc_auc, jnp.stack([scores, scores**3]), labels, **ids)
        return interval.low, both.p_value

    found, expected = jax.jit(low)(SCORES), low(SCORES)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5), found, expected)
