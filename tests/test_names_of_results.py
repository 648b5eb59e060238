"""Names of models, groups and options, from frames and dicts to results and plots."""

import functools
import warnings

import jax
import numpy as np
import pandas
import polars
import pytest
from named_results import FEW, FRAME, LABELS, NEW, OLD, RESULTS, SCORES, result_of

import jaxmetrics as jm
from jaxmetrics import plots


@pytest.fixture(autouse=True)
def _of_few_items():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@pytest.mark.parametrize("name", ["interval", "compare", "bootstrap"])
def test_names_are_no_part_of_the_pytree(name):
    """So that one program serves results of all names."""
    result, plain = result_of(name), RESULTS[name](np.stack([OLD, NEW]))
    assert jax.tree.structure(result) == jax.tree.structure(plain)
    traces = []

    @jax.jit
    def same(x):
        traces.append(str(x) + x._repr_html_() + repr(x))
        with pytest.raises(TypeError, match="outside of jit"):
            x.to_frame()
        return x

    for x in (result, plain, result.named("p", "q")):
        back = same(x)
    assert len(traces) == 1
    assert type(result).__name__ in traces[0]
    assert str(back.named("p", "q", metric="AUC")) == str(plain.named("p", "q"))
    jax.vmap(lambda x: (str(x), x)[1])(jax.tree.map(lambda x: x[None], result))


def test_names_last_on_a_mesh():
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))
    sharding = jax.sharding.NamedSharding(mesh, jax.P("i"))
    scores = {name: jax.device_put(x, sharding) for name, x in (("old", OLD), ("new", NEW))}
    found = jm.confidence_interval(jm.roc_auc, scores, LABELS)
    assert found.to_frame().model.tolist() == ["old", "new"]
    np.testing.assert_allclose(found.estimate, jm.roc_auc(np.stack([OLD, NEW]), LABELS))


def test_named_needs_a_name_for_each_model():
    found = RESULTS["interval"](np.stack([OLD, NEW]))
    assert found.to_frame().model.tolist() == [0, 1]
    assert found.named("p", "q").to_frame().model.tolist() == ["p", "q"]
    for names in (("p",), ("p", "q", "r")):
        with pytest.raises(ValueError, match="a name for each model"):
            found.named(*names)
    assert str(found.named(metric="area")).startswith("area")


def test_nested_results_have_the_names():
    assert result_of("folds").mean.to_frame().model.tolist() == ["old", "new <b>"]
    assert result_of("point").recall.to_frame().model.tolist() == ["old", "new <b>"]


def test_control_characters_are_escaped():
    found = RESULTS["interval"](np.stack([OLD, NEW])).named("a\x1b[31m", "b\n")
    assert "\\x1b" in str(found)
    assert len(str(found).splitlines()) == 5


def test_metrics_with_several_values_have_their_names():
    metric = functools.partial(jm.recall_at_precision, min_precision=0.4, return_threshold=True)
    found = jm.bootstrap(metric, SCORES, LABELS, **FEW)
    assert [*found.to_frame()] == [
        *("model", "value", "value_standard_error"),
        *("threshold", "threshold_standard_error", "n_undefined"),
    ]
    curves = jm.bootstrap(lambda table: table.positives[:2], OLD, LABELS, **FEW)
    assert str(curves) == repr(curves)


@pytest.mark.parametrize(
    "scores",
    [
        SCORES,
        polars.DataFrame({"old": OLD, "new <b>": NEW}),
        {"old": OLD, "new <b>": NEW},
        {"old": FRAME.old, "new <b>": jax.numpy.asarray(NEW)},
        {"old": OLD.tolist(), "new <b>": polars.Series(NEW)},
        SCORES.astype("Float64"),
    ],
    ids=["pandas", "polars", "dict", "series", "lists", "nullable"],
)
def test_columns_and_keys_are_models(scores):
    with jax.enable_x64(True):
        want = jm.roc_auc(np.stack([OLD, NEW]), LABELS)
        np.testing.assert_array_equal(jm.roc_auc(scores, LABELS), want)
        found = jm.compare(jm.roc_auc, scores, LABELS)
    np.testing.assert_array_equal(found.estimate, want)
    assert found.to_frame()[["model", "minus"]].to_numpy().tolist() == [["old", "new <b>"]]


def test_rows_of_a_frame_are_items_even_if_square():
    square = pandas.DataFrame(np.arange(9.0).reshape(3, 3) ** 2 % 5)
    want = jm.roc_auc(square.to_numpy().T, [0, 1, 1])
    np.testing.assert_array_equal(jm.roc_auc(square, [0, 1, 1]), want)
    assert not np.array_equal(want, jm.roc_auc(square.to_numpy(), [0, 1, 1]))


def test_masks_may_be_frames():
    mask = pandas.DataFrame({"old": np.arange(60) < 50, "new <b>": np.arange(60) < 40})
    want = jm.roc_auc(np.stack([OLD, NEW]), LABELS, where=mask.to_numpy().T)
    np.testing.assert_array_equal(jm.roc_auc(SCORES, FRAME.label, where=mask), want)


def test_plots_have_the_names():
    for scores in (SCORES, dict(SCORES)):
        legend = plots.roc(scores, LABELS).get_legend().get_texts()
        assert [x.get_text().split(",")[0] for x in legend[:2]] == ["old", "new <b>"]


def test_dicts_in_jit():
    scores = {"old": OLD, "new": NEW}
    """There JAX itself sorts the keys."""
    want = jm.roc_auc({"new": NEW, "old": OLD}, LABELS)
    np.testing.assert_allclose(jax.jit(jm.roc_auc)(scores, LABELS), want, rtol=1e-6)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({}, "empty dict"),
        ({"a": OLD, "b": NEW[:9]}, r"one shape, got 'a' \[60\], 'b' \[9\]"),
        ({"a": OLD, "b": "text"}, r"scores\['b'\] must hold numbers"),
        ({"a": FRAME.old, "b": FRAME.old[::-1]}, r"scores\['a'\] and scores\['b'\] have different"),
        (SCORES[::-1], "scores and labels have different indexes"),
    ],
)
def test_dicts_and_frames_that_do_not_fit(scores, message):
    with pytest.raises((TypeError, ValueError), match=message):
        jm.roc_auc(scores, FRAME.label)


def test_lists_in_the_rows_of_a_frame_are_refused():
    """They would be taken for items."""
    with pytest.raises(TypeError, match="to_numpy"):
        jm.ndcg(SCORES, LABELS)
    found = jm.ndcg(SCORES, LABELS, segments=np.arange(60) // 20, num_segments=3)
    want = jm.ndcg(np.stack([OLD, NEW]), LABELS, segments=np.arange(60) // 20, num_segments=3)
    np.testing.assert_array_equal(found, want)
