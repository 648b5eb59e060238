"""What callers pass: arrays of other libraries, and mistakes, which must be named."""

import importlib.util
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest

import jaxmetrics as jm
from jaxmetrics import plots, sklearn

SCORES = [0.1, 0.4, 0.35, 0.8, 0.6]
LABELS = [0, 0, 1, 1, 0]
AUC = 4 / 6
NO_NUMBERS = r"its column 'site' does not: leave it out, as in scores\[\['a'\]\]"


@pytest.mark.parametrize(
    "wrap",
    [
        list,
        tuple,
        np.array,
        jnp.asarray,
        pd.Series,
        lambda x: pd.Series(x, dtype="Float64"),
        lambda x: pd.Series(x, dtype="float64[pyarrow]"),
        pl.Series,
        lambda x: pl.DataFrame({"x": x})["x"],
        lambda x: [np.float32(v) for v in x],
        lambda x: [jnp.float32(v) for v in x],
    ],
)
def test_containers(wrap):
    scores, labels = wrap(SCORES), wrap([float(y) for y in LABELS])
    np.testing.assert_allclose(jm.roc_auc(scores, labels), AUC, rtol=1e-6)
    np.testing.assert_allclose(jm.roc_auc(scores, labels, weights=wrap([2.0] * 5)), AUC, rtol=1e-6)


@pytest.mark.parametrize("boolean", [pd.Series, pl.Series, lambda x: pd.Series(x, dtype="boolean")])
def test_boolean_columns(boolean):
    labels, everything = boolean([y == 1 for y in LABELS]), boolean([True] * 5)
    np.testing.assert_allclose(jm.roc_auc(SCORES, labels, where=everything), AUC, rtol=1e-6)


@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="PyTorch is not installed")
def test_pytorch_tensors():
    import torch

    scores, labels = torch.tensor(SCORES), torch.tensor(LABELS)
    np.testing.assert_allclose(jm.roc_auc(scores, labels), AUC, rtol=1e-6)
    np.testing.assert_allclose(jm.roc_auc(scores, labels == 1), AUC, rtol=1e-6)
    close = torch.tensor([0.5, 0.5 + 1e-12], dtype=torch.float64)
    assert jm.roc_auc(close, [0, 1]) == 1  # float64 is not rounded into a tie
    with pytest.raises(Exception, match="detach"):
        jm.roc_auc(scores.requires_grad_(), labels)


def test_close_float64_scores_are_not_ties_without_x64():
    scores = 0.5 + 1e-15 * np.arange(8)
    labels = np.arange(8) % 2
    assert len(np.unique(scores.astype("float32"))) == 1
    with jax.enable_x64(True):
        expected = float(jm.roc_auc(scores, labels))
    assert expected != 0.5
    assert jm.roc_auc(scores, labels) == np.float32(expected)
    assert jm.roc_auc(scores.tolist(), labels) == np.float32(expected)
    assert jm.roc_auc(pd.Series(scores), labels) == np.float32(expected)
    assert jm.one_vs_rest(jm.roc_auc, None)(np.stack([-scores, scores], 1), labels)[1] == expected
    assert jax.jit(lambda y: jm.roc_auc(scores, y))(labels) == np.float32(expected)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        ((SCORES, LABELS[:4]), {}, ValueError, r"scores \[5\], labels \[4\]"),
        ((np.zeros((5, 2)), LABELS), {}, ValueError, r"scores\[:, 1\]"),
        ((np.zeros((2, 5)), np.zeros((3, 5))), {}, ValueError, "must broadcast.*length 1"),
        ((0.5, 1), {}, ValueError, "scores is a single number"),
        ((SCORES, [0, 1, 2, 1, 0]), {}, ValueError, "0 and 1, got 2.*labels =="),
        ((SCORES, [-1, 1, -1, 1, 1]), {}, ValueError, "got -1.*labels > 0"),
        ((SCORES, [-1, 1, 0, 1, 1]), {}, ValueError, "without a label out by where=labels >= 0"),
        ((SCORES, [1, None, 0, 1, 1]), {}, TypeError, r"where=\[x is not None for x in labels\]"),
        ((np.zeros((5, 1)), LABELS), {}, ValueError, r"of a single column write scores\[:, 0\]"),
        ((SCORES, jnp.array([0, 1, 2, 1, 0])), {}, ValueError, "got 2"),
        ((SCORES, [0, 1, np.nan, 1, 0]), {}, ValueError, "got nan: .* where=~numpy.isnan"),
        ((SCORES, LABELS, 0.1), {}, TypeError, "options by name, got 0.1 in place"),
        *(
            ((frame({"a": SCORES, "site": list("abcab")}), LABELS), {}, TypeError, NO_NUMBERS)
            for frame in (pd.DataFrame, pl.DataFrame)
        ),
        (
            (pd.DataFrame([[x, 1.0] for x in "abcde"], columns=["site", "site"]), LABELS),
            {},
            TypeError,
            "scores must hold numbers, got dtype object",
        ),
        ((SCORES, ["no", "yes", "no", "no", "no"]), {}, TypeError, "labels == 'yes'"),
        ((["a", "b", "c", "d", "e"], LABELS), {}, TypeError, "scores must hold numbers"),
        ((np.array(SCORES) + 1j, LABELS), {}, TypeError, "scores.real"),
        (([[0.1], [0.2, 0.3]], LABELS), {}, ValueError, "scores cannot be read"),
        ((SCORES,), {}, TypeError, "labels is missing"),
        (
            (jm.streaming.init(jm.streaming.uniform_bins(8, 0, 1)),),
            {},
            TypeError,
            r"scores are a State: .* as jm.streaming.table\(state, bins=bins\) makes",
        ),
        ((LABELS, SCORES), {}, ValueError, "may be swapped with them: scores come first"),
        ((np.array(SCORES).astype("m8[s]"), LABELS), {}, TypeError, "numpy.timedelta64"),
        ((list(np.array(SCORES).astype("m8[s]")), LABELS), {}, TypeError, "numpy.timedelta64"),
        (({"a": SCORES, "b": SCORES[:2]}, LABELS), {}, ValueError, "must have one shape"),
        ((SCORES, pd.Series(list("abaab"))), {}, TypeError, "labels == 'yes'"),
        ((SCORES, pd.Series(list("abaab"), dtype="category")), {}, TypeError, "labels == 'yes'"),
        ((None, LABELS), {}, TypeError, "scores is missing"),
        ((SCORES, LABELS), {"weights": [1, 1, -1, 1, 1]}, ValueError, "weights must be finite"),
        ((SCORES, LABELS), {"weights": [1, 1, np.nan, 1, 1]}, ValueError, "weights must be"),
        ((SCORES, LABELS), {"weights": jnp.full(5, jnp.inf)}, ValueError, "weights must be"),
        ((SCORES, LABELS), {"weights": [1, 1]}, ValueError, r"weights \[2\]"),
        ((SCORES, LABELS), {"where": [1, 1, 0, 1, 1]}, TypeError, "where=mask != 0"),
        ((["0,1", "0,2", "0", "0", "1"], LABELS), {}, TypeError, "decimals follow a point"),
        (
            (SCORES, LABELS),
            {"where": pd.array([True, None, True, True, True], dtype="boolean")},
            TypeError,
            r"where\.fillna\(False\)\.astype\(bool\)",
        ),
        ((SCORES, LABELS), {"max_fpr": 0.1}, TypeError, "has no option max_fpr"),
        ((SCORES, LABELS), {"sample_weight": [1] * 5}, TypeError, r"roc_auc\(scores, labels"),
        ((jm.ScoreTable(*np.ones((3, 4))), LABELS), {}, TypeError, "pass it alone"),
    ],
)
def test_errors_say_what_to_write(arguments, options, error, words):
    with pytest.raises(error, match=words):
        jm.roc_auc(*arguments, **options)


@pytest.mark.parametrize(
    ("metric", "options", "error", "words"),
    [
        (jm.partial_auc, {"max_fpr": 0.0}, ValueError, r"max_fpr must be in \(0, 1\], got 0"),
        (jm.partial_auc, {"max_fpr": 1.5}, ValueError, "got 1.5: write fractions"),
        (jm.partial_auc, {"max_fpr": -0.1}, ValueError, "got -0.1"),
        (jm.partial_auc, {"max_fpr": np.nan}, ValueError, "got nan"),
        (jm.partial_auc, {"max_fpr": [0.1, 5]}, ValueError, "write fractions"),
        (jm.partial_auc, {"max_fpr": jnp.array([0.1, 5])}, ValueError, "write fractions"),
        (jm.partial_auc, {"max_fpr": "0.1"}, TypeError, "must be a number"),
        (jm.partial_auc, {"max_fpr": True}, TypeError, "must be a number"),
        (jm.partial_auc, {"max_fpr": None}, TypeError, "must be a number"),
        (jm.partial_auc, {"max_fpr": 0.2, "min_fpr": 0.2}, ValueError, "min_fpr must be below"),
        (jm.partial_auc, {"min_tpr": 1.0}, ValueError, r"min_tpr must be in \[0, 1\)"),
        (jm.partial_auc, {"scale": "mclish"}, ValueError, "'raw', 'range', 'mcclish'"),
        (jm.recall_at_fpr, {}, TypeError, "needs max_fpr"),
        (jm.recall_at_fpr, {"max_fpr": 0.1, "method": "exact"}, ValueError, "'step', 'linear'"),
        (
            jm.recall_at_fpr,
            {"max_fpr": 0.1, "quantile_method": "median"},
            ValueError,
            "'median_unbiased'",
        ),
        (
            jm.recall_at_fpr,
            {"max_fpr": 0.1, "amounts": [1, 1, -1, 1, 1]},
            ValueError,
            "amounts must be finite",
        ),
        (jm.precision_at_recall, {"min_recall": 1.1}, ValueError, "min_recall must be in"),
        (
            jm.recall_at_precision,
            {"min_precision": 0.5, "return_threshold": 1},
            TypeError,
            "True or False",
        ),
        (jm.min_cost_threshold, {"fp_cost": -1}, ValueError, "fp_cost must be in"),
        (jm.cost_curve, {"fn_cost": [1, 2]}, TypeError, "fn_cost must be a number"),
    ],
)
def test_errors_of_options(metric, options, error, words):
    with pytest.raises(error, match=words):
        metric(SCORES, LABELS, **options)


def test_masked_items_may_hold_anything():
    where = np.array([True, True, True, True, False])
    scores, labels = [*SCORES[:4], np.nan], [*LABELS[:4], -100]
    value = jm.roc_auc(scores, labels, weights=[1, 1, 1, 1, -5.0], where=where)
    assert value == 0.75
    value = jm.roc_auc(jnp.array(scores), jnp.array(labels), where=jnp.array(where))
    assert value == 0.75


def test_under_jit_nothing_raises_on_data():
    bad = jax.jit(lambda labels, limit: jm.partial_auc(jnp.array(SCORES), labels, max_fpr=limit))
    assert np.isfinite(bad(jnp.array(LABELS), 0.5))
    assert np.isnan(bad(jnp.array([0, 1, 2, 1, 0]), 0.5))
    assert np.isnan(bad(jnp.array(LABELS), 7.0))


@pytest.mark.parametrize("metric", [jm.roc_auc, jm.losses.approx_ndcg_loss])
def test_a_single_column_is_refused_under_jit_too(metric):
    column = np.array(SCORES)[:, None], np.array(LABELS)[:, None]
    for call in (metric, jax.jit(metric)):
        with pytest.raises(ValueError, match=r"write scores\[:, 0\] and labels\[:, 0\]"):
            call(*column)


def test_items_without_a_class_are_left_out():
    with pytest.raises(ValueError, match=r"got -1.*where=labels >= 0"):
        jm.one_vs_rest(jm.roc_auc)(np.eye(3), [0, 1, -1])


def test_roc_auc_sampled_checks_its_count():
    with pytest.raises(ValueError, match="n_pairs must be at least 1"):
        jm.roc_auc_sampled(jax.random.key(0), SCORES, LABELS, n_pairs=0)
    with pytest.raises(TypeError, match="n_pairs must be an int"):
        jm.roc_auc_sampled(jax.random.key(0), SCORES, LABELS, n_pairs=10.0)


@pytest.mark.parametrize("key", [None, 0])
def test_roc_auc_sampled_checks_its_key(key):
    with pytest.raises(TypeError, match=r"write (key=)?jax.random.key\(0\)"):
        jm.roc_auc_sampled(key, SCORES, LABELS, n_pairs=3)


def test_pairs_that_memory_cannot_hold_are_refused():
    with pytest.raises(ValueError, match="n_pairs = 1,000,000,000,000 needs 40,000 GB"):
        jm.roc_auc_sampled(jax.random.key(0), SCORES, LABELS, n_pairs=10**12)


KEY = jax.random.key(0)


@pytest.mark.parametrize("metric", ["roc_auc", 3])
@pytest.mark.parametrize(
    "call",
    [
        jm.one_vs_rest,
        jm.one_vs_one,
        jm.multilabel,
        lambda m: jm.bootstrap(m, SCORES, LABELS, key=KEY),
        lambda m: jm.confidence_interval(m, SCORES, LABELS),
        lambda m: jm.compare(m, [SCORES, SCORES], LABELS),
        lambda m: jm.permutation_test(m, [SCORES, SCORES], LABELS, key=KEY),
        lambda m: jm.influence(m, SCORES, LABELS),
        lambda m: jm.standard_error(m, SCORES, LABELS),
        lambda m: jm.covariance(m, [SCORES, SCORES], LABELS),
        lambda m: jm.streaming.exact(m, [(SCORES, LABELS)]),
    ],
)
def test_a_metric_is_a_function(call, metric):
    with pytest.raises(TypeError, match=r"metric must be a function.*write jaxmetrics.roc_auc"):
        call(metric)
    with pytest.raises(TypeError, match="takes a function of a ScoreTable, got 3"):
        jm.table_metric(3)


def test_ids_whose_span_their_dtype_cannot_hold(rng):
    numbers = np.tile(np.arange(-100, 101), 2)
    items = rng.normal(size=402), rng.random(402) < 0.5
    expected = jm.standard_error(jm.roc_auc, *items, clusters=numbers)
    for ids in (numbers.astype(np.int8), (numbers + 100).astype(np.uint64) + np.uint64(2**63)):
        assert jm.standard_error(jm.roc_auc, *items, clusters=ids) == expected


@pytest.mark.parametrize(
    ("clusters", "error", "words"),
    [
        ([None, 1, 2, 3, 4], ValueError, "must not be None or NaN"),
        (np.array(["a", None, "b", "b", "a"], object), ValueError, "must not be None or NaN"),
        ([0.0, np.nan, 1, 2, 3], ValueError, "must not be None or NaN"),
        ([1, "1", 2, 2, 3], TypeError, r"one type, got int, str: write .*map\(str"),
        (np.array([1, "a", 2, 2, 3], object), TypeError, "one type, got int, str"),
    ],
)
def test_clusters_have_ids_of_one_type(clusters, error, words):
    with pytest.raises(error, match=words):
        jm.bootstrap(jm.roc_auc, SCORES, LABELS, key=KEY, n_resamples=5, clusters=clusters)


LONG = "x" * 500


@pytest.mark.parametrize(
    "call",
    [
        lambda: jm.roc_auc({"a": pd.Series(np.arange(500))}, LABELS),
        lambda: jm.roc_auc(SCORES, [LONG] * 5),
        lambda: jm.roc_auc(SCORES, [{LONG: LONG}] * 5),
        lambda: jm.roc_auc(SCORES, LABELS, **{LONG: 1}),
        lambda: jm.partial_auc(SCORES, LABELS, max_fpr=LONG),
        lambda: jm.partial_auc(SCORES, LABELS, max_fpr={"a": pd.Series(np.arange(500))}),
        lambda: jm.partial_auc(SCORES, LABELS, scale=LONG),
        lambda: jm.ndcg(SCORES, LABELS, k=LONG),
        lambda: jm.ndcg(SCORES, LABELS, discount=LONG),
        lambda: jm.one_vs_rest(jm.roc_auc, LONG),
        lambda: jm.recall(LABELS, LABELS, zero_division=LONG),
        lambda: jm.recall(LABELS, LABELS, average=None, classes=LONG),
        lambda: jm.confidence_interval(jm.roc_auc, SCORES, LABELS, confidence_level=LONG),
        lambda: jm.bootstrap(jm.roc_auc, SCORES, LABELS, key=LONG),
        lambda: jm.bootstrap(jm.roc_auc, SCORES, LABELS, key=KEY, n_resamples=LONG),
        lambda: jm.roc_band(SCORES, LABELS, fpr=LONG),
        lambda: jm.roc_band(SCORES, LABELS, fpr=np.arange(500) / 500 + 1),
        lambda: jm.streaming.init(LONG),
        lambda: jm.streaming.n_items(LONG),
        lambda: jm.streaming.means.result(LONG),
        lambda: plots.roc(np.ones((2, 5)), LABELS, names=LONG),
        lambda: jm.table_metric(LONG),
        lambda: jm.one_vs_rest(LONG),
    ],
)
def test_an_error_quotes_at_most_80_characters_of_a_value(call):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert "x" * 81 not in str(caught.value)
    assert len(str(caught.value)) < 330
    assert "\n" not in str(caught.value)


def test_items_that_are_left_out_are_not_named():
    where = np.arange(5) > 0
    with pytest.raises(ValueError, match="got 5"):
        jm.roc_auc(SCORES, [9, 5, 1, 0, 0], where=where)
    with pytest.raises(ValueError, match=r"got 0\.7"):
        jm.accuracy([0.5, 0.7, 1, 0, 0], LABELS, where=where)
    with pytest.raises(ValueError, match="got 5"):
        jm.one_vs_rest(jm.roc_auc)(np.ones((5, 3)), [9, 5, 1, 0, 2], where=where)


def test_drop_intermediate_takes_one_curve():
    curves = jm.roc_curve([SCORES, SCORES], LABELS)
    with pytest.raises(ValueError, match="takes one curve"):
        jm.drop_intermediate(curves)
    for other in (5, tuple(jm.roc_curve(SCORES, LABELS))):
        with pytest.raises(TypeError, match="what roc_curve, precision_recall_curve"):
            jm.drop_intermediate(other)
    undefined = jm.drop_intermediate(jm.roc_curve(SCORES, [0] * 5))
    assert np.isnan(undefined.tpr).all()


@pytest.mark.parametrize("ids", [list("abaab"), pd.Series(list("abaab"), dtype="category")])
def test_texts_as_ids_of_lists(ids):
    with pytest.raises(
        TypeError, match=r"write numpy.unique\(segments, return_inverse=True\)\[1\]"
    ):
        jm.ndcg(SCORES, LABELS, segments=ids)
    jm.ndcg(SCORES, LABELS, segments=np.unique(ids, return_inverse=True)[1])


def test_errors_of_odd_arguments_are_short_and_say_what_is_wrong():
    with pytest.raises(ValueError, match=r"k must be at least 1 and below 2\^63, got 1000"):
        jm.ndcg(SCORES, LABELS, k=10**20)
    with pytest.raises(ValueError, match=r"scores \[1, 1, .* \.\.\. .*, labels \[5\]") as error:
        jm.roc_auc(np.zeros((1,) * 60), LABELS)
    assert len(str(error.value)) < 160
    with pytest.raises(ValueError, match="is not a valid label") as error:
        sklearn.average_precision_score(LABELS, SCORES, pos_label="p" * 600)
    assert len(str(error.value)) < 160
    with pytest.raises(TypeError, match=r"metric must return a number.*write return"):
        jm.bootstrap(lambda table: None, SCORES, LABELS, key=jax.random.key(0), n_resamples=5)


@pytest.mark.parametrize(
    ("call", "option", "way"),
    [
        (jm.operating_point, "min_specificity", "write max_fpr=1 - min_specificity$"),
        (jm.operating_point, "min_sensitivity", "write min_recall$"),
        (partial(jm.confidence_interval, jm.roc_auc), "alpha", "confidence_level=1 - alpha$"),
        (partial(jm.confidence_interval, jm.roc_auc), "confidence", "write confidence_level$"),
        (partial(jm.bootstrap, jm.roc_auc), "seed", r"write key=jax.random.key\(seed\)$"),
        (partial(jm.compare, jm.roc_auc), "method", "it takes metric, "),
    ],
)
def test_what_others_call_an_option(call, option, way):
    with pytest.raises(TypeError, match=f"has no option {option}: .*{way}"):
        call(SCORES, LABELS, **{option: 0.05})


@pytest.mark.parametrize("infer", [jm.confidence_interval, jm.compare, jm.bootstrap])
def test_amounts_are_no_option_to_be_fixed(infer):
    metric = partial(jm.recall_at_fpr, max_fpr=0.1, amounts=np.ones(5))
    with pytest.raises(TypeError, match=r"amounts of recall_at_fpr stand beside.*pass amounts="):
        infer(metric, [SCORES, SCORES], LABELS, key=jax.random.key(0))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (jm.operating_point, "operating_point"),
        (jm.report, "report"),
        (partial(jm.bootstrap, jm.roc_auc), "bootstrap"),
    ],
)
def test_an_option_that_is_misspelt_is_named(call, name):
    with pytest.raises(TypeError, match=f"{name} has no option clust: write clusters"):
        call(SCORES, LABELS, clust=LABELS)
    with pytest.raises(TypeError, match=f"{name} has no option nothing: it takes .*scores, "):
        call(SCORES, LABELS, nothing=0.1)


def test_a_function_of_items_is_no_metric_of_a_table():
    classes, columns = [0, 1, 2, 1, 0], np.eye(3)[[0, 1, 1, 1, 2]]
    for infer in (jm.confidence_interval, jm.bootstrap, jm.compare):
        with pytest.raises(
            TypeError, match=r'one_vs_rest is no function.*scores\.T.*"Intervals of any'
        ):
            infer(jm.one_vs_rest(jm.roc_auc), columns, classes, key=jax.random.key(0))
