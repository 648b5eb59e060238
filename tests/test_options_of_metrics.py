"""Options of a metric that come with another function, or are lacking, are named."""

import inspect
from functools import partial

import jax
import pytest
from surface import PUBLIC

import jaxmetrics as jm

ITEMS = [0.1, 0.4, 0.3], [0, 1, 1]


def _takes_metric(function):
    parameter = inspect.signature(function).parameters.get("metric")
    return parameter is not None and "Metric" in str(parameter.annotation)  # and not its name


OF_METRICS = [name for name, value in PUBLIC.items() if _takes_metric(value)]


@pytest.mark.parametrize("name", OF_METRICS)
def test_options_of_the_metric_are_refused_with_what_to_write(name):
    function, metric = PUBLIC[name], partial(jm.partial_auc, scale="mcclish")
    with pytest.raises(TypeError) as caught:
        function(metric=metric, max_fpr=0.05, min_tpr=0.5)
    assert str(caught.value) == (
        f"{function.__name__} does not take max_fpr, min_tpr, but partial_auc does: write "
        "functools.partial(jm.partial_auc, scale='mcclish', max_fpr=0.05, min_tpr=0.5) in place "
        "of jm.partial_auc"
    )
    with pytest.raises(TypeError, match=r"has no option max_frp: it takes "):
        function(metric=metric, max_frp=0.05)


def test_what_is_no_option_of_the_metric_is_refused():
    """Weights are of items, a function of a table may be the user's, and may be anything."""

    def share(table, *, least=0):
        return table.positives.sum() > least

    with pytest.raises(TypeError, match=r"write functools.partial\(share, least=3\) in place"):
        jm.compare(share, [[0.1, 0.2]], [0, 1], least=3)
    for metric in (jm.roc_auc, max, "roc_auc"):
        with pytest.raises(TypeError, match="compare has no option axis_name: gather the items"):
            jm.compare(metric, [[0.1, 0.2]], [0, 1], axis_name="x")


@pytest.mark.parametrize("name", ["one_vs_rest", "one_vs_one", "multilabel"])
def test_options_of_the_metric_are_refused_by_the_function_made_of_it(name):
    averaged = getattr(jm, name)(partial(jm.recall_at_fpr, method="linear"), average=None)
    given = [[0.1, 0.2], [0.3, 0.4]], [[0, 1], [1, 0]] if name == "multilabel" else [0, 1]
    with pytest.raises(TypeError) as caught:
        averaged(*given, max_fpr=0.1)
    assert str(caught.value) == (
        f"the function of {name} does not take max_fpr, but recall_at_fpr does: write "
        f"jm.{name}(functools.partial(jm.recall_at_fpr, method='linear', max_fpr=0.1))"
    )
    with pytest.raises(TypeError, match=f"{name} has no option max_frp: it takes scores, labels"):
        averaged(*given, max_frp=0.1)


def _share_at(table, *, least):
    return table.positives.sum() > least


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (jm.recall_at_fpr, "recall_at_fpr needs max_fpr: write {}(jm.recall_at_fpr, max_fpr=0.01)"),
        (
            partial(jm.threshold_at_fpr, method="linear"),
            "threshold_at_fpr needs max_fpr: write "
            "{}(jm.threshold_at_fpr, method='linear', max_fpr=0.01)",
        ),
        (_share_at, "_share_at needs least: write {}(_share_at, least=...)"),
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda m: jm.confidence_interval(m, *ITEMS),
        lambda m: jm.compare(m, [ITEMS[0], ITEMS[0]], ITEMS[1]),
        lambda m: jm.bootstrap(m, *ITEMS, key=jax.random.key(0)),
        lambda m: jm.standard_error(m, *ITEMS),
        lambda m: jm.slices(m, *ITEMS, slices=[0, 0, 1]),
        lambda m: jm.compare_samples(m, *ITEMS, groups=[0, 0, 1]),
        lambda m: jm.one_vs_rest(m)([[0.1, 0.2], [0.3, 0.4]], [0, 1]),
        lambda m: jm.streaming.nnx_metric(m),
    ],
)
def test_a_metric_without_an_option_that_it_needs(call, metric, words):
    with pytest.raises(TypeError) as caught:
        call(metric)
    assert str(caught.value) == words.format("functools.partial")


def test_of_what_a_metric_has_no_option_the_error_says_that_first():
    metric = partial(jm.recall_at_fpr, max_frp=0.1)
    with pytest.raises(TypeError, match="recall_at_fpr has no option max_frp"):
        jm.compare(metric, [ITEMS[0], ITEMS[0]], ITEMS[1])
