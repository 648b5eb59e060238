"""Metrics, errors and losses of items that devices hold in parts, against those of one device."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from processes import printed

import jaxmetrics as jm

found = partial(printed, "axis_worker.py")


@pytest.fixture(scope="module")
def alone():
    return found(1)[0]


def test_unweighted_values_are_those_of_one_device_to_the_last_bit(alone):
    """However the items are spread: ties, sorted, a class or nothing on some devices, NaN."""
    assert alone["counts"] == 0
    assert alone["ordered"] == 0
    assert alone["two axes"] <= 1e-15
    assert alone["float32"] <= 6e-8


def test_ranges_one_after_the_other_give_the_values_of_one_device(alone):
    """However the items are spread, and of long parts in several rounds."""
    assert alone["rounds of long parts"] <= 1e-12
    assert alone["rounds with an error"] <= 1e-12
    assert alone["an almost perfect model"] <= 1e-9


@pytest.mark.parametrize("name", ["weights", "step"])
def test_other_values_are_those_of_one_device(alone, name):
    assert alone[name] <= 1e-12


def test_losses_and_gradients_are_those_of_one_device(alone):
    """And "step" takes the mean over all pairs, where `shard_map` checks."""
    assert alone["gradient of partial_loss, check_vma=False"] <= 1e-12


def test_losses_however_the_items_are_spread(alone):
    assert alone["rates at steps of parts"] <= 1e-12


@pytest.mark.slow
def test_every_metric_with_weights_loss_resampled_statistic_and_second_derivative():
    """The product, of which the others take each way once."""
    everything = found(1, "all")[0]
    for kind in ("hinge", "square", "sigmoid", "rates"):
        assert everything[f"{kind} of parts"] <= 1e-12
    for checked in (True, False):
        assert everything[f"gradient of mean_loss, check_vma={checked}"] <= 1e-12
    assert everything["other weights"] <= 1e-12
    assert everything["errors"] <= 1e-12
    assert everything["intervals"] <= 1e-12
    assert everything["resamples on 8 devices"] == 0
    assert everything["resamples on 3 devices"] == 0
    assert everything["resampled means"] <= 1e-14  # of products of matrices
    assert everything["other derivatives"] <= 1e-12
    assert everything["rounds"] <= 1e-12
    loss = everything["collectives"]["loss"]
    assert loss["all-gather"] <= 8 * 32
    assert loss["all-to-all"] <= 2.5 * 512  # weights of both classes go back together
    assert everything["ordered loss"] <= 1e-6  # of float32


def test_the_gradient_of_the_mapped_loss_is_that_of_one_device(alone):
    assert alone["gradient of shard_map"] <= 1e-12


def test_no_device_receives_all_items(alone):
    """Of 4,096 items in parts of 512: samples are gathered, and about a part is exchanged."""
    sorts, selects = alone["collectives"]["roc_auc"], alone["collectives"]["recall"]
    assert sorts["all-gather"] <= 8 * 64  # a part gives 32 samples, and 64 without weights
    assert sorts["all-to-all"] <= 1.5 * 512
    assert set(selects) == {"all-reduce"}
    assert selects["all-reduce"] <= 8


def test_items_travel_twice_for_an_interval(alone):
    """They are dealt out, and each range comes once for the error and for all else."""
    assert alone["exchanges"] == [2, 2]


@pytest.mark.parametrize("how", ["", " of sharded items"])
def test_resamples_are_those_of_one_device_to_the_last_bit(alone, how):
    assert alone[f"resamples{how}"] == 0


def test_nothing_travels_but_replicates(alone):
    """Of 300, each device makes 48 of 340 and more, of which 300 and more are accepted."""
    assert alone["collectives"]["bootstrap"] == {"all-gather": 8 * 48}


@pytest.mark.slow  # `test_sharded_items` has two processes, too
def test_two_processes_agree_with_one_device():
    for one in found(2):
        assert one["counts"] == 0
        assert one["step"] <= 1e-12
        assert one["resamples"] == 0


def test_a_mesh_is_refused_within_a_mesh_and_where_it_is_none():
    options = {"key": jax.random.key(0), "n_resamples": 2}
    with pytest.raises(TypeError, match=r"mesh must be a jax\.sharding\.Mesh, got str"):
        jm.bootstrap(jm.roc_auc, [0.1, 0.2], [0, 1], mesh="items", **options)
    mesh = jax.make_mesh((1,), ("items",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("items")

    def within(scores, labels):
        return jm.bootstrap(jm.roc_auc, scores, labels, mesh=mesh, **options).replicates

    program = jax.shard_map(within, mesh=mesh, in_specs=spec, out_specs=spec)
    with pytest.raises(ValueError, match=r"outside of jax\.shard_map"):
        program(np.array([0.1, 0.2]), np.array([0, 1]))


def test_an_axis_is_refused_outside_of_a_mesh():
    with pytest.raises(ValueError, match=r"within jax\.shard_map; got 'items'"):
        jm.roc_auc([0.1, 0.2], [0, 1], axis_name="items")
    with pytest.raises(ValueError, match=r"within jax\.shard_map"):
        jm.losses.pairwise_auc_loss([0.1, 0.2], [0, 1], axis_name="items")
    with pytest.raises(TypeError, match=r"no option axis_name: gather .* jax.lax.all_gather"):
        jm.threshold_at_fpr([0.1, 0.2], [0, 1], max_fpr=0.1, axis_name="items")


BOTH = ("m", "d")
FUNCTIONS = {
    "roc_auc": jm.roc_auc,
    "standard_error": partial(jm.standard_error, jm.average_precision),
    "pairwise_auc_loss": jm.losses.pairwise_auc_loss,
    "recall_at_fpr_loss": partial(jm.losses.recall_at_fpr_loss, max_fpr=0.3),
}


def mapped(function, specs, axis_name, arrays):
    """`function` of arrays that two devices hold, along the second of two axes."""
    mesh = jax.make_mesh((1, 2), BOTH, axis_types=(AxisType.Auto,) * 2)

    def of_parts(scores, labels, weights):
        return function(scores, labels, weights=weights, axis_name=axis_name)

    return jax.jit(jax.shard_map(of_parts, mesh=mesh, in_specs=specs, out_specs=P()))(*arrays)


@pytest.fixture
def arrays(rng):
    return rng.normal(size=24).astype("float32"), np.arange(24) % 3 == 0, rng.random(24)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_array_may_be_the_same_along_some_of_the_axes(name, arrays):
    whole = FUNCTIONS[name](*arrays[:2], weights=arrays[2])
    for i in range(3):
        specs = [P(BOTH)] * 3
        specs[i] = P("d")
        found = mapped(FUNCTIONS[name], tuple(specs), BOTH, arrays)
        np.testing.assert_allclose(found, whole, rtol=1e-6)


def test_items_that_are_the_same_on_all_devices_are_refused(arrays):
    """They would count several times in an error."""
    for function in FUNCTIONS.values():
        with pytest.raises(ValueError, match="same on all devices along the axis 'd': leave it"):
            mapped(function, (P("m"),) * 3, BOTH, arrays)


@pytest.mark.parametrize(
    ("axis_name", "match"),
    [((), "must be an axis of the mesh"), (("d", "d"), "each axis once"), ([["d"]], "an axis of")],
)
def test_names_of_no_axes_are_refused(axis_name, match, arrays):
    with pytest.raises(ValueError, match=match):
        mapped(jm.roc_auc, (P("d"),) * 3, axis_name, arrays)


def test_an_axis_of_vmap_is_refused(arrays):
    scores, labels, _ = (x.reshape(2, 12) for x in arrays)
    for function in FUNCTIONS.values():
        with pytest.raises(ValueError, match=r"must be an axis of the mesh.* got 'i'"):
            jax.vmap(partial(function, axis_name="i"), axis_name="i")(scores, labels)


def test_what_takes_no_parts_says_so(arrays):
    def clustered(*given, **options):
        return jm.standard_error(jm.roc_auc, *given, clusters=given[1], **options)

    def compared(scores, labels, weights, axis_name):
        metric = partial(jm.roc_auc, axis_name=axis_name)
        return jm.compare(metric, jnp.stack([scores] * 2), labels, weights=weights).low

    for function in (clustered, compared):
        with pytest.raises(TypeError, match=r"axis_name .* gather the items first"):
            mapped(function, (P("d"),) * 3, "d", arrays)
