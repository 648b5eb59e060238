"""The public surface: names, order of arguments, docstrings, and what importing costs."""

import inspect
import subprocess
import sys
from functools import partial
from operator import attrgetter

import jax
import pytest

import jaxmetrics as jm
from jaxmetrics import plots

ITEMS = [0.1, 0.4, 0.3], [0, 1, 1]

FUNCTIONS = [name for name in jm.__all__ if not name[0].isupper()]
METRICS = [name for name in FUNCTIONS if hasattr(getattr(jm, name), "record")]
OF_PREDICTIONS = [
    name for name in FUNCTIONS if "predictions" in inspect.signature(getattr(jm, name)).parameters
]
# One name for one thing, and one order, everywhere.
ORDER = [
    "key",
    "scores",
    "predictions",
    "labels",
    "n_pairs",
    "weights",
    "where",
    "n_classes",
    "beta",
    "average",
    "classes",
    "positive_class",
    "zero_division",
    "amounts",
    "max_fpr",
    "min_fpr",
    "min_tpr",
    "min_recall",
    "min_precision",
    "min_specificity",
    "min_sensitivity",
    "fp_cost",
    "fn_cost",
    "scale",
    "method",
    "quantile_method",
    "return_threshold",
    "axis_name",
]

INFERENCE = [
    "influence",
    "standard_error",
    "covariance",
    "bootstrap",
    "bootstrap_mean",
    "confidence_interval",
    "compare",
    "compare_means",
    "compare_samples",
    "compare_to_value",
    "mean_interval",
    "slices",
    "fold_interval",
    "permutation_test",
    "roc_band",
    "operating_point",
    "sample_size",
    "power",
    "prediction_powered_interval",
]
POSITIONAL = ("metric", "values", "scores", "labels", "proxy", "slices", "folds", "groups")
# What is computed on what; how; how resampled; which items count; and how much may be taken.
ORDER_OF_INFERENCE = [
    "metric",
    "values",
    "scores",
    "labels",
    "proxy",
    "fpr",
    "slices",
    "folds",
    "groups",
    "min_items",
    "max_fpr",
    "min_recall",
    "min_precision",
    "threshold",
    "criterion",
    "fp_cost",
    "fn_cost",
    "prevalence",
    "value",
    "reference",
    "difference",
    "width",
    "margin",
    "power",
    "n_positives",
    "n_negatives",
    "ratio",
    "paired",
    "labelled",
    "sampling_probability",
    "confidence_level",
    "method",
    "key",
    "n_resamples",
    "stratify",
    "clusters",
    "resampling",
    "weights",
    "where",
    "amounts",
    "batch",
    "memory_budget",
    "mesh",
    "progress",
    "axis_name",
]

LOSSES = [
    *(name for name in jm.losses.__all__ if name.endswith("_loss")),
    *(
        f"{module}.{name}"
        for module in ("kl_partial_auc", "cvar_partial_auc")
        for name in ("init", "apply")
    ),
    "kl_partial_auc.objective",
]
ORDER_OF_LOSSES = [
    "n_slots",
    "state",
    "scores",
    "labels",
    "index",
    "weights",
    "where",
    "segments",
    "num_segments",
    "max_fpr",
    "min_tpr",
    "kl_weight",
    "step_size",
    "surrogate",
    "gain",
    "margin",
    "temperature",
    "band",
    "axis_name",
]
OF_LABEL_SETS = [name for name in jm.extreme.__all__ if name[0].islower()]
ORDER_OF_LABEL_SETS = [
    "predicted",
    "relevant",
    "label_counts",
    "n_instances",
    "k",
    "min_recall",
    "propensities",
    "groups",
    "num_groups",
    "n_labels",
    "reduce",
    "truncate_ideal",
    "by",
    "a",
    "b",
]

TRAINING = [name for name in jm.training.__all__ if name[0].islower()]
ORDER_OF_TRAINING = [
    "state",
    "apply",
    "params",
    "optimizer",
    "train",
    "validation",
    "loss",
    "metric",
    "scores",
    "labels",
    "steps",
    "checkpoints",
    "batch",
    "patience",
    "key",
    "weights",
    "where",
    "amounts",
    "clusters",
    "progress",
]


def test_all_is_what_there_is():
    public = {
        name
        for name, value in vars(jm).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert public == set(jm.__all__)
    assert sorted(set(jm.__all__)) == sorted(jm.__all__)


@pytest.mark.parametrize("name", [*METRICS, *OF_PREDICTIONS, "score_table", "roc_auc_sampled"])
def test_arguments(name):
    parameters = inspect.signature(getattr(jm, name)).parameters
    assert list(parameters) == [p for p in ORDER if p in parameters]
    for parameter in parameters.values():
        positional = parameter.name in ("key", "scores", "predictions", "labels")
        assert (parameter.kind is parameter.POSITIONAL_OR_KEYWORD) == positional
        assert parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)


@pytest.mark.parametrize("name", INFERENCE)
def test_arguments_of_inference(name):
    parameters = inspect.signature(getattr(jm, name)).parameters
    assert list(parameters) == [p for p in ORDER_OF_INFERENCE if p in parameters]
    for parameter in parameters.values():
        positional = parameter.name in POSITIONAL
        assert (parameter.kind is parameter.POSITIONAL_OR_KEYWORD) == positional
        assert (parameter.default is parameter.empty) == positional or parameter.name in (
            "key",
            "value",
            "labelled",
        )


@pytest.mark.parametrize("name", OF_LABEL_SETS)
def test_arguments_of_label_sets(name):
    parameters = inspect.signature(getattr(jm.extreme, name)).parameters
    assert list(parameters) == [p for p in ORDER_OF_LABEL_SETS if p in parameters]
    for parameter in parameters.values():
        positional = parameter.name in ("predicted", "relevant", "label_counts", "n_instances")
        assert (parameter.kind is parameter.POSITIONAL_OR_KEYWORD) == positional


@pytest.mark.parametrize("name", LOSSES)
def test_arguments_of_losses(name):
    parameters = inspect.signature(attrgetter(name)(jm.losses)).parameters
    assert list(parameters) == [p for p in ORDER_OF_LOSSES if p in parameters]
    for parameter in parameters.values():
        positional = parameter.name in ("n_slots", "state", "scores", "labels", "index")
        assert (parameter.kind is parameter.POSITIONAL_OR_KEYWORD) == positional


@pytest.mark.parametrize("name", TRAINING)
def test_arguments_of_training(name):
    parameters = inspect.signature(getattr(jm.training, name)).parameters
    assert list(parameters) == [p for p in ORDER_OF_TRAINING if p in parameters]


def _public(module):
    """Names and what can be called of all that a module makes public, its modules included."""
    for name in module.__all__:
        value, full = getattr(module, name), f"{module.__name__}.{name}"
        if inspect.ismodule(value):
            yield from _public(value)
        elif callable(value):
            yield full, value
        if inspect.isclass(value):
            methods = inspect.getmembers(value, inspect.isfunction)
            yield from ((f"{full}.{m}", f) for m, f in methods if not m.startswith("_"))


PUBLIC = dict(
    each
    for module in (jm, jm.extreme, jm.losses, jm.streaming, jm.training, plots)
    for each in _public(module)
)


@pytest.mark.parametrize("name", PUBLIC)
def test_names_of_counts(name):
    """num_x is how many of the ids x there are, by which an output is indexed; all else is n_x."""
    parameters = set(inspect.signature(PUBLIC[name]).parameters)
    ids = {p for p in parameters if f"num_{p}" in parameters or f"n_{p}" in parameters}
    by_ids = {f"num_{x}" for x in ids - {"classes"}}  # n_classes is the name that all know
    assert {p for p in parameters if p.startswith(("num", "count", "number"))} == by_ids
    assert not {f"n_{x}" for x in ids - {"classes"}} & parameters


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
        with pytest.raises(TypeError, match="compare has no option axis_name: it takes metric, "):
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


def test_defaults_are_the_same_everywhere():
    """Of what has one name, but for how many resamples a p-value needs, and for a key, which is
    only sometimes needed; and a threshold is one, or whose it is."""
    found = {}
    for name in INFERENCE:
        for parameter in inspect.signature(getattr(jm, name)).parameters.values():
            found.setdefault(parameter.name, set()).add(parameter.default)
    several = {name for name, defaults in found.items() if len(defaults) > 1}
    assert several == {"n_resamples", "key", "threshold"}


@pytest.mark.parametrize(
    "name",
    [
        "BootstrapResult",
        "Comparison",
        "Interval",
        "OperatingPoint",
        "PermutationTest",
        "PoweredInterval",
        "RocBand",
        "SampleSize",
        "training.Finetuned",
        "training.Fitted",
    ],
)
def test_attributes_are_documented(name):
    result = attrgetter(name)(jm)
    text = inspect.getdoc(result)
    assert [f for f in result.__dataclass_fields__ if f"{f}:" not in text] == []


@pytest.mark.parametrize(
    "name",
    [
        *FUNCTIONS,
        *(f"extreme.{name}" for name in OF_LABEL_SETS),
        *(f"losses.{name}" for name in LOSSES),
        *(f"training.{name}" for name in TRAINING),
    ],
)
def test_docstrings(name):
    function = attrgetter(name)(jm)
    text = inspect.getdoc(function)
    first, blank, *_ = text.splitlines()
    assert first.endswith((".", ":"))
    assert not blank
    for part in ("Args:", "Returns:", "Raises:", "Example:", ">>> ", "Reference", "NaN"):
        assert part in text, f"{name} has no {part}"
    assert "O(" in text or "cost" in text.lower()
    assert [p for p in inspect.signature(function).parameters if f"{p}:" not in text] == []


def _run(code):
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return result.stdout.split()


def test_import_needs_no_extra():
    extras = (
        "click",
        "matplotlib",
        "pandas",
        "polars",
        "pyarrow",
        "rich",
        "scipy.special",  # .3 s, which intervals need, and metrics do not
        "scipy.stats",
        "sklearn",
    )
    code = "import sys; from jaxmetrics import roc_auc"
    loaded = _run(f"{code}; print(*(m for m in {extras} if m in sys.modules))")
    assert loaded == []


def test_import_runs_nothing_on_a_device():
    imports = "from jaxmetrics import roc_auc; from jax._src import xla_bridge"
    code = f"{imports}; print(len(xla_bridge._backends))"
    assert _run(code) == ["0"]
