"""Mistakes are named with what to write instead, in few words."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest
from small_items import KEY, LABELS, SCORES

import jaxmetrics as jm
from jaxmetrics import plots, sklearn

NO_NUMBERS = r"its column 'site' does not: leave it out, as in scores\[\['a'\]\]"


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
        (
            (SCORES, np.array(["yes", np.nan, "no", "no", "yes"], object)),
            {},
            TypeError,
            r"== 1, or the positive class in place of 1, with where=\[x == x for x in labels\]",
        ),
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
        (
            ([[0.1], [0.2, 0.3]], LABELS),
            {},
            ValueError,
            "scores cannot be read.*its rows have different lengths: pass the same items",
        ),
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
        *(  # ids, and numbers that were not read as such
            ((pd.Series(list("12345"), dtype=kind), LABELS), {}, TypeError, "such as '1'")
            for kind in (None, object, "string", "category")
        ),
        (
            (pd.DataFrame({"a": SCORES, "site": list("12345")}), LABELS),
            {},
            TypeError,
            NO_NUMBERS,
        ),
        ((SCORES, pd.Series(list("01011"))), {}, TypeError, "labels == 'yes'"),
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


def test_errors_of_odd_arguments_are_short_and_say_what_is_wrong():
    with pytest.raises(ValueError, match=r"k must be at least 1 and below 2\^63, got 1000"):
        jm.ndcg(SCORES, LABELS, k=10**20)
    with pytest.raises(ValueError, match=r"below 2\^63"):
        jm.ndcg(SCORES, LABELS, k=[1, 10**20])
    with pytest.raises(ValueError, match=r"scores \[1, 1, .* \.\.\. .*, labels \[5\]") as error:
        jm.roc_auc(np.zeros((1,) * 60), LABELS)
    assert len(str(error.value)) < 160
    with pytest.raises(ValueError, match="is not a valid label") as error:
        sklearn.average_precision_score(LABELS, SCORES, pos_label="p" * 600)
    assert len(str(error.value)) < 160
    with pytest.raises(TypeError, match=r"metric must return a number.*write return"):
        jm.bootstrap(lambda table: None, SCORES, LABELS, key=jax.random.key(0), n_resamples=5)


def test_whole_numbers_beyond_64_bits_are_numbers():
    flagged = np.asarray(SCORES) > np.median(SCORES)
    for beta in (2**64, 2**300):
        assert jm.f_beta(flagged, LABELS, beta=beta) == jm.f_beta(flagged, LABELS, beta=float(beta))
    costs = jm.min_cost_threshold(SCORES, LABELS, fp_cost=10**20, fn_cost=1)
    assert costs == jm.min_cost_threshold(SCORES, LABELS, fp_cost=1e20, fn_cost=1)
    assert jm.extreme.propensities([1, 2], 10**20).shape == (2,)
    assert jm.streaming.uniform_bins(2, 0, 2**70).lower[-1] == 2**69
    for limit, given in ((2**64, "18446744073709551616"), ([0.1, 2**64], "1.84467e.19 among 2")):
        with pytest.raises(ValueError, match=f"max_fpr must be in .0, 1., got {given}"):
            jm.recall_at_fpr(SCORES, LABELS, max_fpr=limit)
    with pytest.raises(ValueError, match=r"beta must be in \[0, inf\), got 1000"):
        jm.f_beta(flagged, LABELS, beta=10**400)
    with pytest.raises(ValueError, match=r"value must be between -inf and inf, got 1000"):
        jm.compare_to_value(jm.roc_auc, SCORES, LABELS, value=10**400)
    with pytest.raises(ValueError, match=r"positive_class must be a class index, got 1844"):
        jm.precision(flagged, LABELS, positive_class=2**64)


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
