"""Arrays on meshes: every public function on eight devices, and what becomes of shardings."""

from contextlib import nullcontext
from functools import cache, partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import in_turn, marked
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from mesh_cases import BINS, CASES, FIRST, FIRST_CASES, FORMS, M, N
from processes import printed

import jaxmetrics as jm
from jaxmetrics import extreme, losses, streaming

SCORES, LABELS = CASES["roc_auc"].arrays()


@cache
def on_eight_devices(cases, processes=1):
    """Of pairs of a name and a form: by these, what went wrong on eight devices, or None."""
    named = ",".join(map(":".join, cases))
    return printed("mesh_worker.py", processes, named, timeout=None)[0]


@pytest.mark.parametrize(("name", "form"), FIRST_CASES)
def test_the_same_on_eight_devices(name, form):
    assert on_eight_devices(FIRST_CASES)[name][form] is None


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_everything_is_the_same_on_eight_devices(form):
    found = on_eight_devices(tuple(product(CASES, FORMS)))
    wrong = {name: forms[form] for name, forms in found.items() if forms.get(form)}
    assert not wrong


BY_PROCESSES = (
    ("one_vs_rest", "eager Auto items"),
    ("bootstrap", "eager Explicit items"),
    ("segment_roc_auc", "eager Explicit items"),
    ("confidence_interval", "eager Auto models"),
    ("compare_samples-precision", "eager Auto items"),
)


@pytest.mark.parametrize(("name", "form"), BY_PROCESSES)
def test_the_same_on_two_processes(name, form):
    assert on_eight_devices(BY_PROCESSES, 2)[name][form] is None


@pytest.mark.slow
@pytest.mark.parametrize("form", [x for x in FORMS if x.startswith("eager")])
def test_everything_is_the_same_on_two_processes(form):
    found = on_eight_devices(tuple(product(CASES, [form])), 2)
    assert {name for name, forms in found.items() if forms[form]} == set()


def test_every_public_function_of_arrays_is_a_case():
    public = {name for name in jm.__all__ if name[0].islower()}
    public |= {f"extreme.{name}" for name in extreme.__all__ if name[0].islower()}
    public |= {name for name in losses.__all__ if name[0].islower()}
    public |= {f"streaming.{name}" for name in streaming.__all__ if name[0].islower()}
    # What has no arrays, or reads them in batches and by NumPy.
    apart = {"drop_intermediate", "slices", "trend", "fold_interval", "report"}
    for name in ("clu_metric", "edges", "exact", "float16_bins", "init", "nnx_metric"):
        apart.add(f"streaming.{name}")
    apart |= {"streaming.quantile_bins", "streaming.uniform_bins"}
    assert public - apart <= {name.split("-")[0] for name in CASES}


def mesh_of(kind, name="m"):
    return jax.make_mesh((2,), (name,), axis_types=(AxisType[kind],))


def on(mesh, array, *axes):
    return jax.device_put(array, NamedSharding(mesh, P(*axes)))


def updated(scores):
    """A state whose own models are divided."""
    state = streaming.init(BINS, (M,))
    state = jax.device_put(state, NamedSharding(mesh_of("Explicit"), P("m")))
    return streaming.update(state, scores, LABELS, bins=BINS)


RESULTS = {
    "a value for each model": (partial(jm.roc_auc, labels=LABELS), ("m",)),
    "one for each item": (partial(jm.influence, jm.roc_auc, labels=LABELS), ("m", None)),
    "resamples": (
        lambda scores: (
            jm.bootstrap(
                jm.roc_auc, scores, LABELS, key=jax.random.key(0), n_resamples=16
            ).replicates
        ),
        (None, "m"),
    ),
    "a curve": (lambda scores: jm.roc_curve(scores, LABELS).fpr, ("m", None)),
    "a state": (lambda scores: updated(scores).digits, ("m", None, None, None)),
}


@pytest.mark.parametrize(("name", "compiled"), in_turn(RESULTS, (False, True)))
def test_models_stay_divided(name, compiled):
    function, axes = RESULTS[name]
    function = jax.jit(function) if compiled else function
    found = function(on(mesh_of("Explicit"), SCORES, "m"))
    assert (*found.sharding.spec, *(None,) * (found.ndim - len(found.sharding.spec))) == axes


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_what_a_program_closes_over_is_known_on_a_mesh(kind, rng):
    values, ids, mesh = rng.random(64), np.arange(64) // 4, mesh_of(kind)
    on_mesh, clusters = on(mesh, values, "m"), on(mesh, ids, "m")
    found = jax.jit(lambda x: jm.mean_interval(x, clusters=clusters).low)(on_mesh)
    np.testing.assert_allclose(found, jm.mean_interval(values, clusters=ids).low, rtol=1e-6)


def test_two_meshes_of_the_same_devices():
    """The result is on that of the first array, without the other's axes."""
    weights = np.linspace(0.5, 1.5, M * N, dtype=np.float32).reshape(M, N)
    given = on(mesh_of("Auto", "d"), LABELS, "d"), on(mesh_of("Auto"), weights, "m")
    found = jm.roc_auc(SCORES, given[0], weights=given[1])
    np.testing.assert_array_equal(found, jm.roc_auc(SCORES, LABELS, weights=weights))
    assert found.sharding.mesh.axis_names == ("d",)


def test_a_state_is_carried_by_scan():
    """Its type does not change, although the items of a batch are divided."""
    mesh = mesh_of("Explicit", "d")
    batches = on(mesh, SCORES, None, "d")

    @jax.jit
    def count(batches):
        def step(state, scores):
            return streaming.update(state, scores, LABELS, bins=BINS), None

        state = jax.tree.map(
            lambda x: jax.reshard(x, NamedSharding(mesh, P())), streaming.init(BINS)
        )
        return jax.lax.scan(step, state, batches)[0]

    expected = streaming.init(BINS)
    for scores in SCORES:
        expected = streaming.update(expected, scores, LABELS, bins=BINS)
    np.testing.assert_array_equal(count(batches).digits, expected.digits)


def test_within_a_mesh_of_explicit_axes_a_state_is_updated_in_place():
    """What is given to `update` is gone with it; nothing warns of types that are lacking."""
    mesh = mesh_of("Explicit", "d")
    given = on(mesh, SCORES, None, "d"), on(mesh, LABELS, "d")
    expected = streaming.init(BINS, (M,))
    for _ in range(2):
        expected = streaming.update(expected, SCORES, LABELS, bins=BINS)
    with jax.set_mesh(mesh):
        state = streaming.init(BINS, (M,))
        for _ in range(2):
            state = streaming.update(state, *given, bins=BINS)
        found = jm.confidence_interval(jm.roc_auc, *given)
    np.testing.assert_array_equal(state.digits, expected.digits)
    alone = jm.confidence_interval(jm.roc_auc, SCORES, LABELS)
    np.testing.assert_allclose(found.low, alone.low, rtol=1e-6)


def test_a_state_whose_memory_was_taken_says_so():
    state = streaming.State(on(mesh_of("Explicit"), streaming.init(BINS).digits))
    state.digits.delete()
    for use in (
        lambda: streaming.update(state, SCORES[0], LABELS, bins=BINS),
        lambda: streaming.table(state, bins=BINS),
        lambda: streaming.merge(state, state),
    ):
        with pytest.raises(ValueError, match="an update has taken the memory of this state"):
            use()


OF_PARTS = [
    losses.average_precision_loss,
    partial(jm.standard_error, jm.roc_auc),
    partial(losses.partial_auc_loss, max_fpr=0.3),
    losses.pairwise_auc_loss,
    partial(losses.recall_at_fpr_loss, max_fpr=0.3),
    jm.average_precision,
]


@pytest.mark.parametrize(
    ("metrics", "checked"),
    [(OF_PARTS[:1], True), *(marked(OF_PARTS, x, fast=False) for x in (True, False))],
)
def test_parts_of_one_device_are_the_whole(metrics, checked):
    """Programs for many devices also run on one."""

    def values(scores, labels, **axis):
        return jnp.stack([metric(scores, labels, **axis) for metric in metrics])

    mesh = jax.make_mesh((1,), ("d",), axis_types=(AxisType.Auto,))
    of_parts = jax.shard_map(
        partial(values, axis_name="d"),
        mesh=mesh, in_specs=P("d"), out_specs=P(), check_vma=checked,
    )  # fmt: skip
    found = jax.jit(of_parts)(SCORES[0], LABELS)
    np.testing.assert_allclose(found, values(SCORES[0], LABELS), rtol=1e-5)


def test_parts_of_no_rows_have_no_value():
    def value(scores, labels):
        return jm.average_precision(scores, labels, axis_name="m")

    whole = jax.shard_map(value, mesh=mesh_of("Auto"), in_specs=P(None, "m"), out_specs=P())
    assert whole(np.zeros((0, N)), np.zeros((0, N), bool)).shape == (0,)


def test_items_that_two_axes_of_a_mesh_divide():
    mesh = jax.make_mesh((2, 1), ("a", "b"), axis_types=(AxisType.Explicit,) * 2)
    given = on(mesh, SCORES, None, ("a", "b")), on(mesh, LABELS, ("a", "b"))
    np.testing.assert_array_equal(jax.jit(jm.roc_auc)(*given), jm.roc_auc(SCORES, LABELS))


def test_uneven_sizes_are_padded_and_masked():
    n = N - 1
    scores = np.where(np.arange(N) < n, SCORES, np.nan)
    mesh = mesh_of("Explicit", "d")
    given = on(mesh, scores, None, "d"), on(mesh, LABELS, "d")
    where = on(mesh, np.arange(N) < n, "d")
    for function in (jm.roc_auc, jax.jit(jm.roc_auc)):
        found = function(*given, where=where)
        np.testing.assert_array_equal(found, jm.roc_auc(SCORES[:, :n], LABELS[:n]))


@pytest.mark.parametrize(
    "name",
    [marked(name, fast=name in FIRST) for name, case in CASES.items() if case.traced],
)
def test_a_program_for_several_platforms(name):
    function, arrays = jax.jit(CASES[name].function), CASES[name].arrays()
    exported = jax.export.export(function, platforms=["cpu", "cuda", "tpu"])(*arrays)
    assert exported.platforms == ("cpu", "cuda", "tpu")
    if name == FIRST[0]:
        np.testing.assert_allclose(exported.call(*arrays), function(*arrays), rtol=1e-6)


def test_sizes_that_are_not_known_are_refused():
    (n,) = jax.export.symbolic_shape("n")
    scores, labels = (jax.ShapeDtypeStruct((n,), x) for x in (np.float32, bool))
    with pytest.raises(TypeError, match=r"scores has a size that is not known, \[n\]: export"):
        jax.export.export(jax.jit(jm.roc_auc))(scores, labels)
    with pytest.raises(TypeError, match="a size that is not known"):
        jax.export.export(jax.jit(jm.losses.pairwise_auc_loss))(scores, labels)
    columns, classes = (jax.ShapeDtypeStruct(x, np.int32) for x in ((n, 3), (n,)))
    for function, *arrays in (
        (jm.mean_interval, scores),
        (jm.compare_means, jax.ShapeDtypeStruct((2, n), np.float32)),
        (jm.one_vs_one(jm.roc_auc), columns, classes),
        (partial(extreme.precision_at_k, k=2), columns, columns),
    ):
        with pytest.raises(TypeError, match=r"a size that is not known, \[(2, )?n"):
            jax.export.export(jax.jit(function))(*arrays)


def test_what_varies_between_devices_has_a_derivative_of_its_own():
    """A limit that varies, of items that do not: their influence is not added up over devices."""
    mesh = mesh_of("Auto")
    limits = np.array([0.3, 0.9], np.float32)

    def on_each(limit):
        metric = partial(jm.partial_auc, max_fpr=limit[0])
        return jm.influence(metric, SCORES[:1], jnp.asarray(LABELS))

    program = jax.shard_map(on_each, mesh=mesh, in_specs=P("m"), out_specs=P("m"))
    expected = np.concatenate([on_each(limits[i : i + 1]) for i in range(2)])
    np.testing.assert_allclose(jax.jit(program)(limits), expected, rtol=1e-5, atol=1e-7)


def test_loops_have_the_types_that_shard_map_checks():
    def value(scores):
        return jm.ordered_pair_accuracy(scores, LABELS.astype(np.float32))

    program = jax.shard_map(value, mesh=mesh_of("Auto"), in_specs=P("m"), out_specs=P("m"))
    np.testing.assert_array_equal(jax.jit(program)(SCORES), value(SCORES))


def test_a_stream_of_parts_is_scanned():
    """From a state that differs between devices, as the page on streams has it."""
    bins = streaming.uniform_bins(16)
    scores = np.random.default_rng(0).random((3, 8), np.float32)

    def on_each(scores, labels):
        def step(state, batch):
            return streaming.update(state, *batch, bins=bins), None

        first = jax.lax.pcast(streaming.init(bins), "m", to="varying")
        return jax.lax.psum(jax.lax.scan(step, first, (scores, labels))[0], "m")

    program = jax.shard_map(on_each, mesh=mesh_of("Auto"), in_specs=P(None, "m"), out_specs=P())
    state = streaming.init(bins)
    state = streaming.update(state, scores.ravel(), (scores > 0.4).ravel(), bins=bins)
    found = jax.jit(program)(scores, scores > 0.4)
    for got, want in zip(*(streaming.table(x, bins=bins) for x in (found, state)), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("in_context", [False, marked(True, fast=False)])
def test_a_model_is_trained_with_explicit_axes(in_context, rng):
    """As the page on meshes says: JAX knows where a gradient lies that is on the mesh."""
    mesh, features = mesh_of("Explicit"), rng.normal(size=(N, 3)).astype(np.float32)

    @jax.jit
    def slope(parameters, features, labels):
        return jax.grad(lambda x: losses.pairwise_auc_loss(features @ x, labels))(parameters)

    given, context = on(mesh, features, "m"), jax.set_mesh(mesh) if in_context else nullcontext()
    parameters = jnp.ones(3) if in_context else on(mesh, np.ones(3, np.float32))
    with context:
        found = slope(parameters, given, on(mesh, LABELS, "m"))
    np.testing.assert_allclose(found, slope(jnp.ones(3), features, LABELS), rtol=1e-5, atol=1e-6)
    assert found.sharding.mesh.shape == mesh.shape


def test_transformations_of_divided_models():
    def value(weights, scores):
        return jm.roc_auc(scores, jnp.asarray(LABELS), weights=weights)

    slopes = jax.jit(jax.vmap(jax.grad(value), (None, 0)))
    weights, mesh = np.linspace(0.5, 1.5, N, dtype=np.float32), mesh_of("Explicit")
    found = slopes(on(mesh, weights), on(mesh, SCORES, "m"))
    np.testing.assert_allclose(found, slopes(weights, SCORES), rtol=1e-5, atol=1e-7)
