"""jaxmetrics.sklearn takes the values of options that scikit-learn takes, and no others."""

import numpy as np
import pytest
import sklearn.metrics
from scikit_tests import same
from scipy import sparse

import jaxmetrics.sklearn as ours

TRUTH, SAID, SCORES = [0, 1, 1, 0, 1], [0, 1, 0, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.5]
RELEVANT, RANKED = np.array([[1, 0, 1], [0, 1, 1]]), np.array([[0.1, 0.2, 0.3], [0.3, 0.1, 0.2]])
TEXTS = ["1"] * 5
COUNTED = ["f1_score", "precision_score", "recall_score"]
CURVES = ["roc_curve", "precision_recall_curve", "det_curve"]
LISTS = ["dcg_score", "ndcg_score"]
LABELS = ["label_ranking_loss", "label_ranking_average_precision_score"]

REFUSED = [
    *((f"{x}_score", {"average": "foo"}) for x in ("roc_auc", "average_precision")),
    ("average_precision_score", {"pos_label": [1]}),
    *(("roc_auc_score", x) for x in ({"multi_class": "zzz"}, {"labels": "x"}, {"max_fpr": "a"})),
    *((f"{x}accuracy_score", {"normalize": "no"}) for x in ("", "top_k_")),
    ("balanced_accuracy_score", {"adjusted": "x"}),
    *((name, {"drop_intermediate": x}) for name in CURVES for x in ("no", 2, None)),
    *((name, {"pos_label": [1]}) for name in CURVES),
    *((name, {"ignore_ties": "a"}) for name in LISTS),
    *(("dcg_score", {"log_base": x}) for x in ("a", 0, np.inf, 1 + 0j)),
    *((name, {"labels": "a"}) for name in (*COUNTED, "confusion_matrix", "top_k_accuracy_score")),
    *((name, {"pos_label": 1 + 0j}) for name in COUNTED),
    *((name, {"zero_division": x}) for name in COUNTED for x in (0.5, "x", np.True_, None)),
    *(("fbeta_score", {"beta": x}) for x in (None, 1 + 1j, "a", [1], np.nan, -1)),
    *((name, {"sample_weight": TEXTS}) for name in (*COUNTED, "accuracy_score")),
    *((name, {"sample_weight": TEXTS[:2]}) for name in (*LISTS, *LABELS, "coverage_error")),
]


def _inputs(name):
    if name in (*LISTS, *LABELS, "coverage_error"):
        return RELEVANT, RANKED
    counted = name in (*COUNTED, "fbeta_score", "confusion_matrix")
    said = counted or (name.endswith("accuracy_score") and not name.startswith("top"))
    return TRUTH, SAID if said else SCORES


@pytest.mark.parametrize(("name", "options"), REFUSED)
def test_options_that_scikit_learn_refuses(name, options):
    for library, error in ((sklearn.metrics, (ValueError, TypeError)), (ours, ValueError)):
        with pytest.raises(error):
            getattr(library, name)(*_inputs(name), **options)


@pytest.mark.parametrize("zero_division", [True, False, np.float32("nan"), np.float64(1)])
@pytest.mark.parametrize("name", COUNTED)
def test_values_of_zero_division(name, zero_division):
    options = {"average": "macro", "labels": [0, 1, 2], "zero_division": zero_division}
    same(name, TRUTH, SAID, **options)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("balanced_accuracy_score", {"adjusted": np.True_}),
        ("accuracy_score", {"normalize": np.False_}),
        ("roc_curve", {"drop_intermediate": np.False_}),
        ("roc_curve", {"pos_label": np.True_}),
        ("balanced_accuracy_score", {"sample_weight": TEXTS}),
    ],
)
def test_options_that_scikit_learn_takes(name, options):
    same(name, *_inputs(name), **options)


@pytest.mark.parametrize("labels", [[0, 1, 2], np.array([[0], [1], [2]])])
def test_labels_in_a_column(labels):
    same("roc_auc_score", [2, 0, 1], np.full((3, 3), 1 / 3), multi_class="ovr", labels=labels)


def test_labels_in_a_row_are_refused():
    with pytest.raises(ValueError, match=r"labels must be a list \[classes\]"):
        ours.confusion_matrix(TRUTH, SAID, labels=[[0, 1]])


@pytest.mark.parametrize("kind", [sparse.coo_matrix, sparse.csr_array])
def test_sparse_inputs_of_what_takes_dense_ones(kind):
    for name in ("confusion_matrix", "balanced_accuracy_score", "roc_auc_score", *CURVES, *LABELS):
        with pytest.raises(ValueError, match=r"must be a dense array: write .toarray\(\)"):
            getattr(ours, name)(RELEVANT, kind(RANKED))


@pytest.mark.parametrize("name", ["accuracy_score", "coverage_error", "ndcg_score"])
def test_negative_weights_are_refused(name):
    truth, scores = _inputs(name)
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        getattr(ours, name)(truth, scores, sample_weight=np.r_[-1.0, np.ones(len(truth) - 1)])
