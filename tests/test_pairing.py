"""Arrays that would be paired wrongly, or whose items would be lost, are refused and named."""

from functools import partial

import jax
import numpy as np
import pandas as pd
import pytest

import jaxmetrics as jm
from jaxmetrics import plots

SCORES = np.array([0.1, 0.4, 0.35, 0.8, 0.6, 0.2])
LABELS = np.array([0, 0, 1, 1, 0, 1])
KEY = jax.random.key(0)
BINS = jm.streaming.uniform_bins(4)
RESAMPLED = {"key": KEY, "n_resamples": 5}

KL = jm.losses.kl_partial_auc


def ids(column):
    """A list of one label for each instance."""
    return pd.DataFrame({0: np.asarray(column) > 0.3}, column.index).astype(int)


# Each takes scores, labels, and one more array of the items by name.
CALLS = {
    "weights": partial(jm.roc_auc),
    "where": partial(jm.average_precision),
    "amounts": partial(jm.recall_at_fpr, max_fpr=0.5),
    "segments": jm.ndcg,
    "clusters": partial(jm.bootstrap, jm.roc_auc, **RESAMPLED),
}
VALUES = {"where": np.ones(6, bool), "segments": np.zeros(6, int), "clusters": np.arange(6)}
TWO = {
    "metric": jm.roc_auc,
    "predictions": lambda s, y: jm.accuracy(y, pd.Series(LABELS, s.index)),
    "classes": lambda s, y: jm.one_vs_rest(jm.roc_auc)(pd.DataFrame({"a": s, "b": -s}), y),
    "labels": lambda s, y: jm.multilabel(jm.roc_auc)(pd.DataFrame(s), pd.DataFrame(y)),
    "models": lambda s, y: jm.roc_auc(pd.DataFrame({"a": s, "b": -s}), y),
    "list": jm.ndcg,
    "loss": jm.losses.pairwise_auc_loss,
    "stream": lambda s, y: jm.streaming.update(jm.streaming.init(BINS), s, y, bins=BINS),
    "mean": lambda s, y: jm.bootstrap_mean(s, weights=y, **RESAMPLED),
    "slots": lambda s, y: KL.apply(KL.init(6), s, LABELS, pd.Series(range(6), y.index)),
    "label sets": lambda s, y: jm.extreme.precision_at_k(ids(s), ids(y), k=1),
    "propensities": lambda s, y: jm.extreme.propensity_scored_precision_at_k(
        ids(s), ids(y), k=1, propensities=np.ones(2)
    ),
    "reach": lambda s, y: jm.extreme.k_for_recall(ids(s), ids(y), min_recall=0.5, n_labels=2),
    "nnx": lambda s, y: jm.streaming.nnx_metric(jm.roc_auc, bins=BINS).update(scores=s, labels=y),
    "clu": lambda s, y: jm.streaming.clu_metric(jm.roc_auc, bins=BINS).from_model_output(s, y),
    "exact": lambda s, y: jm.streaming.exact(jm.roc_auc, lambda: [(s, y)]),
    "roc": plots.roc,
    "window": partial(plots.roc_with_window, max_fpr=0.5),
    "precision-recall": plots.precision_recall,
    "det": plots.det,
    "costs": partial(plots.cost, fp_cost=1, fn_cost=2),
    "calibration": plots.calibration,
    "distributions": plots.score_distributions,
    "queries": lambda s, y: plots.ndcg_at_k(s, y, segments=np.zeros(6, int), max_k=2),
    "segment": partial(jm.segment_roc_auc, segments=np.zeros(6, int)),
}
CLUSTERED = {
    "interval": partial(jm.confidence_interval, jm.roc_auc, SCORES),
    "error": partial(jm.standard_error, jm.roc_auc, SCORES),
    "compare": partial(jm.compare, jm.roc_auc, np.stack([SCORES, -SCORES])),
    "covariance": partial(jm.covariance, jm.roc_auc, np.stack([SCORES, -SCORES])),
    "band": partial(jm.roc_band, SCORES),
}


@pytest.mark.parametrize("name", TWO)
def test_columns_of_pandas_are_paired_by_equal_indexes(name):
    scores, labels = pd.Series(SCORES), pd.Series(LABELS)
    with pytest.raises(ValueError, match=r"different indexes.*\.to_numpy\(\)"):
        TWO[name](scores, labels.sample(frac=1, random_state=1))
    TWO[name](scores, labels)


@pytest.mark.parametrize("kind", [dict, pd.DataFrame])
def test_models_and_labels_of_one_name_must_be_at_one_place(kind):
    """Findings of a chest radiograph, say: paired by position, each would have another's labels."""
    scores, labels = kind({"a": SCORES, "b": -SCORES}), kind({"b": LABELS, "a": LABELS})
    way = {dict: r"\{x: labels\[x\] for x in scores\}", pd.DataFrame: r"labels\[list\(scores\)\]"}
    with pytest.raises(ValueError, match=rf"have 'a' at different places.*write {way[kind]}"):
        jm.roc_auc(scores, labels)
    for names in (["a", "b"], ["y", "b"], ["a", "y"], ["of a", "of b"]):
        jm.roc_auc(scores, kind({names[0]: LABELS, names[1]: LABELS}))
    masks = kind({"b": LABELS == LABELS, "a": LABELS == LABELS})
    with pytest.raises(ValueError, match="scores and where have 'a' at different places"):
        jm.roc_auc(scores, LABELS, where=masks)


@pytest.mark.parametrize("name", CALLS)
def test_every_array_of_the_items_must_have_the_index(name):
    column = pd.Series(VALUES.get(name, np.ones(6)))
    with pytest.raises(ValueError, match=f"labels and {name} have different indexes"):
        CALLS[name](SCORES, pd.Series(LABELS), **{name: column.iloc[::-1]})
    CALLS[name](SCORES, pd.Series(LABELS), **{name: column})


@pytest.mark.parametrize("name", CLUSTERED)
def test_clusters_must_have_the_index(name):
    with pytest.raises(ValueError, match="labels and clusters have different indexes"):
        CLUSTERED[name](pd.Series(LABELS), clusters=pd.Series(range(6)).iloc[::-1])


def test_what_divides_the_items_must_have_their_index():
    site = pd.Series(["a", "b"] * 20)
    scores = pd.Series(np.arange(40.0) % 7)
    labels, moved = site.index % 3 == 0, site.iloc[::-1]
    calls = {
        "groups": lambda x: jm.compare_samples(jm.roc_auc, scores, labels, x),
        "slices": lambda x: jm.slices(jm.roc_auc, scores, labels, x),
        "folds": lambda x: jm.fold_interval(jm.roc_auc, scores, labels, x),
        r"slices\[1\]": lambda x: jm.slices(jm.roc_auc, scores, labels, (site, x)),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=f"scores and {name} have different indexes"):
            call(moved)
        call(site)
    with pytest.raises(ValueError, match="values and clusters have different indexes"):
        jm.mean_interval(scores, clusters=moved)
    both = pd.DataFrame({"old": scores, "new": -scores})
    with pytest.raises(ValueError, match="values and clusters have different indexes"):
        jm.compare_means(both, clusters=moved)


def test_entries_of_labels_must_be_in_the_order_of_the_labels():
    """`value_counts` has the most frequent label first."""
    counts = pd.Series([1, 2, 2, 0]).value_counts()
    extreme = jm.extreme
    calls = {
        "label_counts": extreme.label_deciles,
        "groups": lambda groups: extreme.precision_at_k([[0]], [[0]], k=1, groups=groups),
        "propensities": lambda column: extreme.propensity_scored_precision_at_k(
            [[0]], [[0]], k=1, propensities=1 / column
        ),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=rf"{name} must have an entry.*reindex.*to_numpy\(\)"):
            call(counts)
        call(counts.sort_index())
        call(counts.to_numpy() if name != "propensities" else counts.set_axis(list("abc")))


def test_an_index_alone_is_not_compared():
    shuffled = pd.Series(SCORES).sample(frac=1, random_state=1)
    assert jm.roc_auc(shuffled, LABELS) == jm.roc_auc(shuffled.to_numpy(), LABELS)
    assert jm.roc_auc(shuffled, pd.Series(LABELS, shuffled.index)) == jm.roc_auc(shuffled, LABELS)


@pytest.mark.parametrize("name", ["scores", "labels", *CALLS])
def test_a_masked_array_is_refused(name):
    arrays = {"scores": SCORES, "labels": LABELS}
    call = CALLS.get(name, jm.roc_auc)
    given = np.asarray(VALUES.get(name, arrays.get(name, np.ones(6))))
    way = r"write where\.filled\(False\)" if name == "where" else "getmaskarray"
    with pytest.raises(TypeError, match=f"{name} is a masked array.*{way}"):
        call(**arrays | {name: np.ma.array(given, mask=np.arange(6) == 2)})
    call(**arrays | {name: np.ma.array(given)})  # nothing is masked


IN_LISTS = {
    "metric": lambda columns: jm.roc_auc(columns, LABELS),
    "tuple": lambda columns: jm.losses.pairwise_auc_loss(tuple(columns), LABELS),
    "compare": lambda columns: jm.compare(jm.roc_auc, columns, LABELS),
    "permutation": lambda columns: jm.permutation_test(jm.roc_auc, columns, LABELS, **RESAMPLED),
    "plot": lambda columns: plots.roc(columns, LABELS),
    "weights": lambda columns: jm.roc_auc(SCORES, LABELS, weights=columns),
    "nested": lambda columns: jm.roc_auc([columns, columns], LABELS),
}


@pytest.mark.parametrize("name", IN_LISTS)
def test_columns_in_a_list_are_checked_as_one_is(name):
    column, call = pd.Series(SCORES), IN_LISTS[name]
    with pytest.raises(ValueError, match=r"\[0\] and .*\[1\] have different indexes"):
        call([column, column.sample(frac=1, random_state=1)])
    with pytest.raises(TypeError, match=r"\[1\] is a masked array.*getmaskarray\(numpy.ma.stack"):
        call([SCORES, np.ma.array(SCORES, mask=SCORES > 0.5)])
    call([column, column])
    call([np.ma.array(SCORES), SCORES])  # nothing is masked


def test_masks_in_a_list_and_labels_beside_one():
    valid = pd.Series(SCORES) > 0.1
    with pytest.raises(ValueError, match=r"labels and where\[1\] have different indexes"):
        jm.roc_auc(SCORES, pd.Series(LABELS), where=[valid, valid.iloc[::-1]])
    with pytest.raises(TypeError, match=r"numpy.ma.stack\(where\)\.filled\(False\)"):
        jm.roc_auc(SCORES, LABELS, where=[np.ma.array(valid, mask=~valid), valid])
    with pytest.raises(ValueError, match=r"scores\[0\] and labels have different indexes"):
        jm.roc_auc([pd.Series(SCORES)], pd.Series(LABELS).iloc[::-1])


def test_columns_in_place_of_items():
    one_hot = np.eye(2, dtype=int)[LABELS]
    scores = np.stack([1 - SCORES, SCORES], axis=1)
    with pytest.raises(ValueError, match=r"\[6, 2\] with a single 1.*one_vs_rest.*multilabel"):
        jm.roc_auc(scores, one_hot)
    with pytest.raises(ValueError, match=r"\[6, 1\] look like columns.*scores\[:, 0\]"):
        jm.roc_curve(scores[:, 1:], one_hot[:, 1:])
    with pytest.raises(ValueError, match=r"predictions.argmax\(-1\)"):
        jm.accuracy(one_hot, one_hot)
    with pytest.raises(ValueError, match=r"\[6, 1\] look like columns"):
        jm.losses.pairwise_auc_loss(scores[:, 1:], one_hot[:, 1:])
    assert jax.jit(jax.vmap(jm.roc_auc))(scores, one_hot).shape == (6,)
    assert jm.multilabel(jm.roc_auc, "samples")(scores, one_hot).shape == ()
    assert np.isnan(jm.one_vs_rest(jm.roc_auc)(np.eye(3)[:1], [0]))  # one item, three classes
