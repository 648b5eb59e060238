"""What training refuses, before the first step."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
import pytest
from trained import ADAM, HELD, KEY, LOSS, METRIC, SGD, START, TRAIN, X, Y, finetune, fit, linear

import jaxmetrics as jm

TINY = np.full(len(Y), 1e-60)  # 0 in single precision
FRAME = pd.DataFrame(X, np.arange(len(Y)) * 2)
LABELS = pd.Series(Y, FRAME.index)
REFUSED = [
    ({"steps": 21}, ValueError, "write steps=24"),
    ({"steps": 0}, ValueError, "steps must be at least 1"),
    ({"batch": 8}, TypeError, "key is missing"),
    ({"batch": (8, 0), "key": KEY}, ValueError, "batch must be at least 1"),
    ({"batch": 2.5, "key": KEY}, TypeError, "batch must be an int"),
    ({"batch": [8, 8], "key": KEY}, TypeError, r"a tuple of two, as \(64, 64\)"),
    ({"train": X}, TypeError, "train must be .features, labels."),
    ({"train": (X, Y, {"weight": Y})}, TypeError, "keys among weights, where"),
    ({"train": (X, Y[:-1])}, ValueError, r"scores \(200,\) and labels \(199,\)"),
    ({"train": (X, 2 * Y)}, ValueError, "labels"),
    ({"train": (X, Y / 2)}, ValueError, "labels must be .* got 0.5: write labels == positive_cl"),
    ({"train": (X.astype(str), Y)}, TypeError, r"write numpy\.asarray\(train\[0\], float"),
    ({"validation": (X.astype(object), Y)}, TypeError, r"asarray\(validation\[0\], float"),
    ({"train": ({"a": X, "b": X.astype(str)}, Y)}, TypeError, r"train\[0\]\['b'\] must hold numbe"),
    ({"train": (X.tolist(), Y)}, TypeError, r"train\[0\]\[0\]\[0\]: of lists write numpy\.asarray"),
    ({"train": (X, Y * 0), "batch": (1, 1), "key": KEY}, ValueError, "only one"),
    (
        {"train": (X, Y, {"where": Y * 0 == 1}), "batch": 8, "key": KEY},
        ValueError,
        "leave out all of train",
    ),
    ({"apply": lambda p, x: x}, ValueError, "must be scores .n."),
    ({"params": np.array([1, 2])}, TypeError, "split the model"),
    ({"validation": (X, Y * 0)}, ValueError, "the metric of the start is NaN"),
    ({"train": (X, Y, {"weights": TINY})}, ValueError, "highest of weights must be from 1e-28"),
    ({"validation": (X, Y, {"amounts": TINY})}, ValueError, "highest of amounts must be from"),
    ({"train": (X[:0], Y[:0])}, ValueError, "train has no items"),
    ({"train": (X, Y, {"weights": 0.0 * Y})}, ValueError, "leave out all of train"),
    ({"train": (FRAME[::-1], LABELS)}, ValueError, "features and labels have different indexes"),
    ({"validation": (dict(FRAME[::-1]), LABELS)}, ValueError, r"features.* different indexes"),
    ({"batch": 8, "key": 0}, TypeError, "key must be one JAX random key, got 0"),
    ({"batch": 8, "key": jax.random.split(KEY)}, TypeError, "key must be one JAX random key"),
    ({"metric": "roc_auc"}, TypeError, "write jaxmetrics.roc_auc without quotes"),
    ({"metric": partial(METRIC, max_fpr=[0.1, 0.2])}, ValueError, "one limit at a time"),
    ({"metric": jm.training.cross_entropy}, TypeError, "write .* -loss.scores, labels"),
    (
        {"metric": partial(jm.losses.partial_auc_loss, max_fpr=0.1)},
        TypeError,
        "partial_auc_loss is a loss",
    ),
]


@pytest.mark.parametrize(("change", "error", "match"), REFUSED)
def test_bad_input_is_refused_before_the_first_step(change, error, match):
    def loss(*args, **options):
        raise AssertionError("a step was taken")

    given = {"apply": linear, "params": START, "optimizer": SGD, "train": TRAIN}
    given |= {"validation": HELD, "loss": loss, "metric": METRIC, "steps": 4, "checkpoints": 4}
    with pytest.raises(error, match=match):
        jm.training.fit(**given | change)


def test_a_metric_that_is_resampled_needs_a_key_before_the_first_step():
    def loss(*args, **options):
        raise AssertionError("a step was taken")

    with pytest.raises(TypeError, match="key"):
        finetune(loss=loss, metric=jm.table_metric(lambda table: table.thresholds[..., 0]))


def test_clusters_with_another_index_are_refused():
    clusters = pd.Series(np.arange(len(Y)), FRAME.index[::-1])
    with pytest.raises(ValueError, match="labels and clusters have different indexes"):
        finetune(validation=(X, LABELS), clusters=clusters)


def test_only_batches_are_computed():
    """The check of the data traces the model, and has no room for all rows at once."""
    rows = []

    def apply(params, x):
        if not isinstance(x, jax.core.Tracer):
            rows.append(len(x))
        return linear(params, x)

    fit(apply=apply, batch=8, key=KEY)
    finetune(apply=apply, train=(X, Y), validation=(X[:50], Y[:50]), batch=8, key=KEY)
    assert set(rows) == {50}  # of the comparisons


@pytest.mark.parametrize("batch", [1, None])
def test_a_loss_that_is_always_0_is_told(batch):
    loss = partial(jm.losses.pairwise_auc_loss, margin=1.0)
    train = (X, Y) if batch else (X[Y], Y[Y])
    with pytest.warns(UserWarning, match="nothing was learned: the loss of all steps is 0"):
        fit(loss=loss, train=train, batch=batch, key=KEY)


def test_a_loss_that_diverges_is_told():
    with pytest.warns(UserWarning, match="the loss is NaN after step .*: lower the learning rate"):
        fit(
            optimizer=optax.sgd(1e30), loss=partial(jm.losses.pairwise_auc_loss, surrogate="square")
        )


def test_the_checkpoint_after_which_the_loss_is_nan_is_told():
    """Of the scores, which are the number of steps, from 8 on."""

    def loss(scores, labels):
        return jnp.where(jnp.mean(scores) > 7.5, jnp.nan, -jnp.mean(scores))

    constant = {"apply": lambda steps, x: steps + 0 * x[:, 0], "params": jnp.zeros(())}
    with pytest.warns(UserWarning, match="the loss is NaN after step 5, as after steps"):
        fit(**constant, optimizer=optax.sgd(1.0), loss=loss, metric=jm.roc_auc)


def test_a_loss_that_is_nan_in_one_step_is_told_so():
    def loss(scores, labels):
        nothing_learned = jnp.where(jnp.all(scores == 0), jnp.nan, 0.0)
        return jm.training.cross_entropy(scores, labels) + 0 * nothing_learned

    with pytest.warns(UserWarning, match="NaN in some of the steps 0 to .*, but not in the last"):
        fitted = fit(loss=loss, params=0 * START)
    assert fitted.step > 0


def test_an_option_of_a_loss_that_is_missing_is_told():
    with pytest.raises(TypeError, match=r"'max_fpr': fit calls .*partial\(loss, max_fpr"):
        fit(loss=jm.losses.partial_auc_loss)


def test_a_loss_whose_state_is_not_seen_says_what_to_pass():
    apply = jm.losses.kl_partial_auc.apply
    for loss in (jax.jit(apply), lambda *given: apply(*given)):
        with pytest.raises(TypeError, match=r"fit calls loss\(scores, labels\).*_auc.apply itself"):
            fit(loss=loss)
    with pytest.raises(TypeError, match=r"'weights': fit calls loss\(scores, labels, weights=\)"):
        jm.training.fit(
            linear,
            START,
            SGD,
            (X, Y, {"weights": np.ones(len(Y))}),
            HELD,
            loss=lambda scores, labels: scores.mean(),
            metric=METRIC,
            steps=20,
        )


def test_features_that_are_nan_are_named():
    given = {"params": START, "validation": HELD, "loss": LOSS, "metric": METRIC}
    given |= {"steps": 20, "checkpoints": 4}
    broken = np.array(X)
    broken[3, 0] = np.nan
    with pytest.raises(ValueError, match="scores of train are NaN at the start"):
        jm.training.fit(linear, train=(broken, Y), optimizer=ADAM, **given)
    with pytest.raises(TypeError, match=r"optimizer must be one of optax, got .*write optax"):
        jm.training.fit(linear, train=TRAIN, optimizer=optax.adam, **given)


def test_fit_refuses_a_loss_of_each_item_and_to_be_traced():
    with pytest.raises(
        ValueError, match=r"loss must return one number, got \[200\]: write its mean"
    ):
        fit(loss=lambda scores, labels: (scores - labels) ** 2)
    for other in (lambda scores, labels: (LOSS(scores, labels), 1), lambda scores, labels: None):
        with pytest.raises(ValueError, match=r"return one number, got (tuple|NoneType)"):
            fit(loss=other)
    with pytest.raises(TypeError, match=r"fit .* cannot be traced: call it outside of jit"):
        jax.jit(lambda x: fit().params + x)(1.0)
