"""Metrics of items that eight devices hold in parts, of one process or of one of two.

    python tests/axis_worker.py PROCESS PROCESSES PORT [all]

Prints as JSON the largest distance of each result from that of one device, on all items.
"""

import functools
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from devices import (
    ITEMS,
    ROWS,
    WHOLE,
    N,
    distance,
    on_devices,
    placed,
    sizes_of_collectives,
    skewed,
)
from jax.sharding import AxisType, PartitionSpec

import jaxmetrics as jm
from jaxmetrics._base import key_ranges

process, processes, port = map(int, sys.argv[1:4])
everything = "all" in sys.argv[4:]
if processes > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", processes, process)
jax.config.update("jax_enable_x64", True)

MESH = jax.make_mesh((8,), ("items",), axis_types=(AxisType.Auto,))
EXPLICIT = jax.make_mesh((8,), ("items",), axis_types=(AxisType.Explicit,))
GRID = jax.make_mesh((2, 4), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
LEAST = key_ranges._LEAST
rng = np.random.default_rng(3)
found = {}


scores, labels, where = skewed(rng)
weights = rng.choice([0.0, 0.125, 0.25, 0.75], N) * rng.random(N)  # in a unit that is not 1
models = scores[0] + np.round(rng.normal(size=(2, N)), 1)


def counted(scores, labels, where, **axis):
    given = {"where": where, **axis}
    return (
        jm.roc_auc(scores, labels, **given),
        jm.recall_at_fpr(scores, labels, max_fpr=[0.02, 0.1, 0.5], **given),
        jm.recall_at_fpr(scores, labels, max_fpr=0.1, method="quantile", **given),
    )


def sums_over_positives(scores, labels, where, **axis):
    given = {"where": where, **axis}
    some = (
        jm.partial_auc(scores, labels, max_fpr=0.6, min_fpr=0.1, min_tpr=0.3, **given),
        jm.average_precision(scores, labels, **given),
        jm.recall_at_fpr(scores, labels, max_fpr=0.1, method="linear", **given),
    )
    if not everything:
        return some
    return (
        *some,
        jm.roc_auc(scores, labels, **given),
        jm.partial_auc(scores, labels, max_fpr=[0.1, 0.4], **given),
        jm.recall_at_fpr(scores, labels, max_fpr=[0.1, 0.2, 0.3, 0.4, 0.5], **given),
    )


def sums_and_an_error(scores, labels, where, **axis):
    given = {"where": where, **axis}
    area = functools.partial(jm.partial_auc, max_fpr=0.6, min_fpr=0.1, min_tpr=0.3)
    return jm.roc_auc(scores, labels, **given), jm.standard_error(area, scores, labels, **given)


def digits_of_error(scores, labels, **axis):
    return jnp.log(jm.standard_error(jm.roc_auc, scores, labels, **axis))


def weighted(scores, labels, where, weights, **axis):
    given = {"where": where, "weights": weights, **axis}
    return (
        jm.partial_auc(scores, labels, max_fpr=[0.1, 0.4], scale="mcclish", **given),
        jm.average_precision(scores, labels, **given),
        jm.recall_at_fpr(scores, labels, max_fpr=0.1, amounts=weights, **given),
    )


def weighted_otherwise(scores, labels, where, weights, **axis):
    given = {"where": where, "weights": weights, **axis}
    return (
        jm.roc_auc(scores, labels, **given),
        jm.partial_auc(scores, labels, max_fpr=0.6, min_fpr=0.1, min_tpr=0.3, **given),
        jm.recall_at_fpr(scores, labels, max_fpr=0.1, method="linear", **given),
        jm.recall_at_fpr(scores, labels, max_fpr=0.1, method="quantile", **given),
    )


def compared(name, function, specs, *arrays, axis="items", mesh=MESH, **options):
    of_parts = functools.partial(function, axis_name=axis)
    got = on_devices(of_parts, specs, *arrays, mesh=mesh, **options)
    got = jax.tree.map(lambda x: np.asarray(x.addressable_data(0)), got)
    found[name] = distance(got, jax.tree.map(np.asarray, function(*arrays)))


compared("counts", counted, (ROWS,) * 3, scores, labels, where)


FEATURES = rng.normal(size=(N, 3))
PARAMETERS = rng.normal(size=3)


def mean_loss(parameters, features, labels, weights, **axis):
    return jm.losses.pairwise_auc_loss(features @ parameters, labels, weights=weights, **axis)


def partial_loss(parameters, features, labels, weights, **axis):
    given = {"weights": weights, "max_fpr": 0.3, "min_tpr": 0.1, "surrogate": "square", **axis}
    return jm.losses.partial_auc_loss(features @ parameters, labels, **given)


def slope(loss, parameters, *arrays, **axis):
    """The loss, and its gradient as a user writes it: the mean over the devices."""
    value, gradient = jax.value_and_grad(loss)(parameters, *arrays, **axis)
    return value, jax.lax.pmean(gradient, axis["axis_name"]) if axis else gradient


TWO_WAY = {"max_fpr": 0.3, "min_tpr": 0.2, "band": 0.0}
KINDS = {
    "all pairs": jm.losses.pairwise_auc_loss,
    "soft window": functools.partial(jm.losses.partial_auc_loss, max_fpr=0.3),
    "two-way window": functools.partial(jm.losses.partial_auc_loss, **TWO_WAY),
    "recall": functools.partial(jm.losses.recall_at_fpr_loss, max_fpr=0.3),
    "recall at a step": functools.partial(jm.losses.recall_at_fpr_loss, max_fpr=0.3, band=0.0),
    "average precision": jm.losses.average_precision_loss,
}
STEPS = N // 2  # of the false positive rate, where each second item is negative
RATES = ["average precision", "recall", "recall at a step"]
OF_PAIRS = [x for x in KINDS if x not in RATES]


def losses_and_slopes(kinds, scores, labels, where, weights, **options):
    """The losses, and the slopes of a weighted sum as the scores of each problem move, each item
    by its own amount."""
    given = {"where": where, "weights": weights, **options}

    def summed(amounts):
        moved = scores + amounts[:, None] * jnp.where(jnp.isfinite(scores), jnp.sin(scores), 0)
        losses = jnp.stack(
            [i * KINDS[kind](moved, labels, **given) for i, kind in enumerate(kinds, 1)]
        )
        return jnp.nansum(losses), losses

    slopes, losses = jax.grad(summed, has_aux=True)(jnp.zeros(len(scores)))
    return losses, jax.lax.pmean(slopes, "items") if "axis_name" in options else slopes


def losses_at_steps(scores, labels, **axis):
    """Of equal weights, whose sums round in the order of the devices, at limits they just reach."""
    given = {"weights": 0 * scores + 0.7, "band": 0.0, **axis}
    limits = jnp.arange(1, 40) / STEPS
    return jax.vmap(lambda x: jm.losses.recall_at_fpr_loss(scores, labels, max_fpr=x, **given))(
        limits
    )


def other_derivatives(parameters, features, labels, weights, **axis):
    """In the temperature, in the scale of the positives' weights, and the second one of a scale."""

    def loss(scale, temperature, weight):
        return jm.losses.partial_auc_loss(
            scale * features @ parameters, labels, surrogate="logistic", max_fpr=0.3,
            temperature=temperature, weights=weights * (1 + (weight - 1) * labels), **axis,
        )  # fmt: skip

    at = 1.0, 2.0, 0.7
    first = jax.grad(loss, argnums=(1, 2))(*at)
    second = jax.grad(jax.grad(loss))(*at)
    found = first, second
    return jax.lax.pmean(found, axis["axis_name"]) if axis else found


def step(loss, parameters, *arrays, **axis):
    """The parameters after one step of optax."""
    optimizer = optax.adam(1e-2)
    _, gradient = slope(loss, parameters, *arrays, **axis)
    updates, _ = optimizer.update(gradient, optimizer.init(parameters))
    return optax.apply_updates(parameters, updates)


trained = PARAMETERS, FEATURES, labels[0], weights
OF_TRAINED = (WHOLE, ITEMS, ITEMS, ITEMS)
compared("step", functools.partial(step, mean_loss), OF_TRAINED, *trained)


RESAMPLES = {"key": jax.random.key(7), "n_resamples": 300}


def areas(mesh, *arrays):
    given = arrays or (scores[0], labels[0])
    return jm.bootstrap(jm.roc_auc, *given, mesh=mesh, **RESAMPLES).replicates


def of_resamples(mesh):
    """Of the head of the items, and of clusters."""
    options = {"mesh": mesh, **RESAMPLES}
    area = functools.partial(jm.partial_auc, max_fpr=0.1)
    interval = jm.confidence_interval(area, scores[0], labels[0], method="percentile", **options)
    compared = jm.compare(
        functools.partial(jm.threshold_at_fpr, max_fpr=0.1),
        models, labels[0], clusters=np.arange(N) // 2, **options,
    )  # fmt: skip
    return interval.low, interval.high, compared.standard_error


def means(mesh):
    return jm.bootstrap_mean(models, weights=weights, mesh=mesh, **RESAMPLES).replicates


def same_resamples(name, function, mesh):
    found[name] = distance(*(jax.tree.map(np.asarray, function(x)) for x in (mesh, None)))


same_resamples("resamples", areas, MESH)


def check_more():
    """What one process is enough for."""
    of_weighted = (ROWS, ROWS, ROWS, ITEMS)
    given = of_weighted, scores, labels, where, weights
    compared("weights", weighted, *given, check_vma=False)
    if everything:
        compared("other weights", weighted_otherwise, *given, check_vma=False)

    def precise(scores, labels, **axis):
        return jm.roc_auc(scores, labels, **axis), jm.average_precision(scores, labels, **axis)

    sixty_four = scores[0].astype(np.float64) + 1e-12 * rng.integers(0, 3, N)
    both = (PartitionSpec(("a", "b")),) * 2
    compared("two axes", precise, both, sixty_four, labels[0], axis=("a", "b"), mesh=GRID)
    with jax.enable_x64(False):
        explicit = {"mesh": EXPLICIT, "check_vma": False}
        compared("float32", precise, (ITEMS,) * 2, scores[0], labels[0], **explicit)

    of_all = ((mean_loss, True), (mean_loss, False)) if everything else ()
    for loss, checked in ((partial_loss, False), *of_all):
        name = f"gradient of {loss.__name__}, check_vma={checked}"
        gradient = functools.partial(slope, loss)
        compared(name, gradient, OF_TRAINED, *trained, check_vma=checked)
    near = np.where(abs(scores) > 9, scores / 100, scores).astype(np.float64)
    given = (ROWS, ROWS, ROWS, ITEMS), near, labels, where, weights
    # Else "step" has the mean over all pairs, "gradient of partial_loss" the soft window, and
    # `losses_at_steps` the values of the recall.
    for surrogate in ("hinge", "square", "sigmoid") if everything else ():
        losses = functools.partial(losses_and_slopes, OF_PAIRS, surrogate=surrogate)
        compared(f"{surrogate} of parts", losses, *given)
    if everything:
        compared("rates of parts", functools.partial(losses_and_slopes, RATES), *given)
    apart = rng.permutation(N).astype(np.float64), np.arange(N) % 2 == 0
    compared("rates at steps of parts", losses_at_steps, (ITEMS, ITEMS), *apart)
    if everything:
        compared("other derivatives", other_derivatives, OF_TRAINED, *trained)

    whole = jax.shard_map(
        functools.partial(mean_loss, axis_name="items"),
        mesh=MESH, in_specs=OF_TRAINED, out_specs=WHOLE,
    )  # fmt: skip
    found["gradient of shard_map"] = distance(
        jax.jit(jax.grad(whole))(*trained), jax.grad(mean_loss)(*trained)
    )

    recall = functools.partial(jm.recall_at_fpr, max_fpr=0.1)

    def numbers(interval):
        return interval.estimate, interval.low, interval.high, interval.standard_error

    def errors(models, labels, weights, **axis):
        interval = jm.confidence_interval(jm.roc_auc, models, labels, weights=weights, **axis)
        given = {"weights": weights, **axis}
        return numbers(interval), jm.covariance(jm.average_precision, models, labels, **given)

    specs = (ROWS, ITEMS, ITEMS)
    if everything:  # `sharded_worker` has the same of whole arrays
        compared("errors", errors, specs, models, labels[0], weights)

    def limits(models, labels, **axis):
        return numbers(jm.confidence_interval(several, models, labels, **axis))

    # As many limits as models, of unlike classes; the first beyond one is the lowest score of all.
    several = functools.partial(jm.recall_at_fpr, max_fpr=[0.1, 0.9])
    given = np.where(models < -0.5, -np.inf, models), np.stack([labels[0], rng.random(N) < 0.6])
    if everything:
        compared("intervals", limits, (ROWS, ROWS), *given, check_vma=False)

    # The ranges of long parts, one after the other, here of few items.
    if everything:
        key_ranges._LEAST = 1
        compared("rounds", sums_and_an_error, (ROWS,) * 3, scores, labels, where)
    key_ranges._LEAST = 8
    tied = np.round(rng.normal(size=8 * 512), 2).astype(np.float32)
    long = [tied, np.sort(tied), np.sign(tied), rng.permutation(8 * 512).astype(np.float32)]
    rows = np.stack(long), np.stack([x > tied for x in long]), np.stack([tied > -2] * 4)
    compared("rounds of long parts", sums_over_positives, (ROWS,) * 3, *rows)
    compared("rounds with an error", sums_and_an_error, (ROWS,) * 3, *rows)
    jax.clear_caches()
    key_ranges._LEAST = LEAST
    # One positive is below one negative: far less than the rounding of the sums of squared slopes.
    places = np.arange(160_000, dtype=np.float32)
    high = places > 90_000
    high[89_999] = True
    compared("an almost perfect model", digits_of_error, (ITEMS,) * 2, places, high)

    # Larger parts, in order: the room for the rows that travel is just what they may need.
    ordered = np.arange(8 * 512, dtype=np.float32), rng.random(8 * 512) < 0.3

    def collectives(metric, specs=WHOLE):
        mapped = jax.shard_map(
            functools.partial(metric, axis_name="items"),
            mesh=MESH, in_specs=ITEMS, out_specs=specs,
        )  # fmt: skip
        arrays = [placed(x, ITEMS, MESH) for x in ordered]
        program = jax.jit(mapped).lower(*arrays).compile()
        away = distance(program(*arrays), metric(*ordered))
        kind = "ordered" if specs == WHOLE else "ordered loss"
        found[kind] = max(found.get(kind, 0.0), away)
        return sizes_of_collectives(program)

    def exchanges(metric):
        """How often items travel: as they are dealt out, and for each pass over the ranges."""

        def low(*items):
            return jm.confidence_interval(metric, *items, axis_name="items").low

        mapped = jax.shard_map(low, mesh=MESH, in_specs=ITEMS, out_specs=WHOLE)
        return jax.jit(mapped).lower(*ordered).as_text().count("stablehlo.all_to_all")

    found["exchanges"] = [
        exchanges(x) for x in (jm.average_precision, functools.partial(jm.partial_auc, max_fpr=0.1))
    ]

    def resampled(*arrays):
        return jm.bootstrap(jm.roc_auc, *arrays, mesh=MESH, **RESAMPLES).replicates

    resampling = jax.jit(resampled).lower(*ordered).compile()

    found["collectives"] = {
        "roc_auc": collectives(jm.roc_auc),
        "recall": collectives(recall),
        "bootstrap": sizes_of_collectives(resampling),
    }

    three = jax.sharding.Mesh(np.array(jax.devices()[:3]), ("resamples",))
    if everything:
        loss = jax.value_and_grad(jm.losses.average_precision_loss)
        found["collectives"]["loss"] = collectives(loss, (WHOLE, ITEMS))
        same_resamples("resamples on 8 devices", of_resamples, EXPLICIT)
        same_resamples("resamples on 3 devices", of_resamples, three)
        same_resamples("resampled means", means, MESH)
    sharded = [placed(x, ITEMS, EXPLICIT) for x in (scores[0], labels[0])]
    alone = areas(None)
    with jax.set_mesh(EXPLICIT):
        shared = areas(EXPLICIT, *sharded)
    found["resamples of sharded items"] = distance(np.asarray(shared), np.asarray(alone))


if processes == 1:
    check_more()
print(json.dumps(found))
if processes > 1:
    jax.distributed.shutdown()
