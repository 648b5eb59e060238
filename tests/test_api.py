"""The public surface: names, order of arguments, docstrings, and what importing costs."""

import inspect
import subprocess
import sys
from operator import attrgetter

import pytest
from surface import PUBLIC

import jaxmetrics as jm

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
    "n_clusters",
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


@pytest.mark.parametrize("name", PUBLIC)
def test_names_of_counts(name):
    """num_x is how many of the ids x there are, by which an output is indexed; all else is n_x."""
    parameters = set(inspect.signature(PUBLIC[name]).parameters)
    ids = {p for p in parameters if f"num_{p}" in parameters or f"n_{p}" in parameters}
    if name == "jaxmetrics.power":
        ids -= {"clusters"}  # n_clusters are those of a study, and clusters those of the pilot
    by_ids = {f"num_{x}" for x in ids - {"classes"}}  # n_classes is the name that all know
    assert {p for p in parameters if p.startswith(("num", "count", "number"))} == by_ids
    assert not {f"n_{x}" for x in ids - {"classes"}} & parameters


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
