"""Results read themselves: in words, as HTML and as frames."""

import dataclasses
import functools
import sys
import warnings

import jax
import numpy as np
import pytest
from named_results import GROUPS, LABELS, NEW, OLD, RESULTS, SCORES, result_of

import jaxmetrics as jm
from jaxmetrics import plots
from jaxmetrics._base.results import Column, Result, Table
from jaxmetrics._base.words import metric_in_words, threshold_in_words


@pytest.fixture(autouse=True)
def _of_few_items():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@pytest.mark.parametrize("name", RESULTS)
def test_names_of_models_are_in_all_three(name):
    result = result_of(name)
    frame = result.to_frame()
    kinds = [kind for kind in ("model", "minus") if kind in frame and name != "samples"]
    named = {x for kind in kinds for x in frame[kind]} or set(frame["model"])
    assert named == {"old", "new <b>"}
    text, page = str(result), result._repr_html_()
    for model in named:
        assert model in text
    assert "new &lt;b&gt;" in page
    assert "<b>" not in page
    assert "estimate" not in text.splitlines()[0]
    assert page.count("<tr>") == len(frame) + 1


def test_frame_has_all_numbers():
    """Each number of the comparison, of the pairs above the diagonal, as it is."""
    found = jm.compare(jm.roc_auc, SCORES, LABELS, margin=0.1)
    frame = found.to_frame().iloc[0]
    fields = [name for name in vars(found) if np.shape(getattr(found, name)) == (2, 2)]
    assert len(fields) == 14
    for name in fields:
        assert frame[name] == getattr(found, name)[0, 1]
    assert [frame.estimate, frame.minus_estimate] == found.estimate.tolist()


def test_a_margin_is_told():
    """And with a reference which models are not worse by it, at one side of the level."""
    scores = np.stack([OLD, OLD + 0.01 * NEW, -OLD])
    for margin, told in ((0.2, "b"), (1e-9, "none")):
        found = jm.compare(jm.roc_auc, scores, LABELS, margin=margin, reference=0)
        assert found.margin == margin
        text = str(found.named("a", "b", "c"))
        assert f"not worse than a by {margin:g}, one-sided at 5 %: {told};" in text
    assert "margin 0.2;" in str(jm.compare(jm.roc_auc, scores, LABELS, margin=0.2))


def test_one_interval_is_a_sentence():
    values = np.float32([0.9580, 0.9512, 0.9641, 0.0033])
    interval = jm.Interval(*values, "closed form", 0.95).named(metric="AUC")
    assert str(interval) == "AUC 0.958, 95 % interval 0.951 to 0.964, closed form"
    assert str(interval.named("new")) == f"new: {interval}"


def test_a_metric_in_words_has_its_options():
    metric = functools.partial(jm.partial_auc, max_fpr=0.1)
    assert metric_in_words(metric) == "partial AUC (max_fpr=0.1)"
    assert metric_in_words(functools.partial(metric, scale="mcclish")).count("=") == 2
    found = jm.confidence_interval(metric, OLD, LABELS)
    assert str(found).startswith("partial AUC (max_fpr=0.1) 0.0")


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (0.2, "0.123"),
        (0.021, "0.123"),
        (0.0021, "0.1235"),
        (4.0, "0.1"),
        (40.0, "0"),
        (np.nan, "0.123"),
    ],
)
def test_two_digits_of_the_width_are_shown(width, text):
    interval = jm.Interval(0.12345, 0.1, 0.1 + width, width, "wald", 0.9)
    assert str(interval).split(",")[0] == f"estimate {text}"


def test_digits_are_the_same_in_a_column():
    arrays = (np.array([0.5, 0.25]), np.array([0.4, 0.249]), np.array([0.6, 0.251]))
    text = str(jm.Interval(*arrays, np.array([0.05, 0.0005]), "wald", 0.95))
    assert "0.5000  0.4000 to 0.6000" in text
    assert "0.2500  0.2490 to 0.2510" in text


def test_undefined_numbers_are_dashes():
    nan = np.array([np.nan, 0.5])
    assert "0             -               -" in str(jm.Interval(nan, nan, nan, nan, "wald", 0.95))


def test_compare_says_what_a_reader_asks():
    text = str(jm.compare(jm.roc_auc, {"a": OLD, "b": NEW, "c": OLD + 0.1 * NEW}, LABELS))
    head, columns, *pairs, notes = text.splitlines()
    assert head == "Differences of AUC"
    assert columns.split("  ")[0] == "model"
    assert "simultaneous" in columns
    assert [tuple(x.split()[:2]) for x in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert notes.startswith("AUC: a 0.")
    assert notes.endswith("not significantly worse than the best: b")


def test_groups_have_their_names():
    found = jm.compare_samples(jm.roc_auc, OLD, LABELS, GROUPS).to_frame()
    assert found[["group", "minus"]].to_numpy().tolist() == [["x", "y"]]


def test_crossed_slices_have_two_names():
    found = jm.slices(jm.roc_auc, OLD, LABELS, (GROUPS, GROUPS)).to_frame()
    assert found.slice.tolist() == ["x, x", "y, y"]


@pytest.mark.parametrize("of", [lambda x: x, jm.trend], ids=["slices", "trend"])
def test_differences_within_slices_have_a_row_for_each_pair(of):
    """As those of `compare`: a model minus itself, and each pair again, say nothing."""
    months = np.repeat(["2026-01", "2026-02", "2026-03"], 20)
    found = of(jm.slices(jm.roc_auc, SCORES, LABELS, months, min_items=3)).models
    frame = found.to_frame()
    assert frame[["model", "minus"]].drop_duplicates().to_numpy().tolist() == [["old", "new <b>"]]
    assert len(frame) == (1 if of is jm.trend else 3)
    np.testing.assert_array_equal(frame.p_value, np.ravel(found.p_value[..., 0, 1]))


def test_many_rows_are_shortened_but_in_the_frame():
    band = jm.roc_band(OLD, LABELS, fpr=np.linspace(0, 1, 101))
    assert len(str(band).splitlines()) < 30
    assert "..." in str(band)
    assert "..." in band._repr_html_()
    assert len(band.to_frame()) == 101


def test_what_is_no_number_is_its_repr():
    shapes = jax.eval_shape(lambda: jm.Interval(*map(np.float32, (1, 0, 2, 1)), "wald", 0.95))
    assert str(shapes) == repr(shapes)
    assert shapes._repr_html_().startswith("<pre>")


def test_a_batch_of_vmap_has_a_row_for_each():
    scores = np.stack([SCORES.to_numpy().T, SCORES.to_numpy().T[::-1], np.stack([OLD, OLD**3])])
    for test in (jm.permutation_test, jm.bootstrap):

        def of(rows, test=test):
            return test(jm.roc_auc, rows, LABELS, key=jax.random.key(0), n_resamples=16)

        found, rows = jax.jit(jax.vmap(of))(scores), [of(x).to_frame() for x in scores]
        frame = found.to_frame()
        assert frame["axis 0"].tolist() == [i for i, x in enumerate(rows) for _ in range(len(x))]
        for name in rows[0]:
            np.testing.assert_allclose(frame[name], np.concatenate([x[name] for x in rows]), 1e-5)
    assert str(found).endswith("\n16 resamples")


@pytest.mark.parametrize("name", ["compare", "slices", "slices_of_models", "folds", "bootstrap"])
def test_what_is_left_without_numbers_is_its_repr(name):
    """As a pytree of axes, and a stack of results whose leading axis has names."""
    result = result_of(name)
    empty = jax.tree.map(lambda x: None, result)
    assert str(empty) == repr(empty)
    stack = jax.tree.map(lambda *x: np.stack(x), result, result, result)
    if name in ("slices", "folds"):
        assert str(stack) == repr(stack)
        with pytest.raises(TypeError, match="for each result of a stack"):
            stack.to_frame()
    else:
        assert len(stack.to_frame()) == 3 * len(result.to_frame())


def test_a_stack_of_trends_is_its_repr():
    months = np.arange(60) // 3 % 5
    found = jm.trend(jm.slices(jm.roc_auc, OLD, LABELS, months, min_items=2))
    stack = jax.tree.map(lambda *x: np.stack(x), found, found)
    assert str(found).startswith("slope of AUC")
    assert str(stack) == repr(stack)


def test_frame_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'jaxmetrics-exact\[report\]'"):
        result_of("interval").to_frame()


def test_all_results_read_themselves():
    """Each public type with an interval, a difference or a size is one."""
    types = [getattr(jm, name) for name in jm.__all__ if isinstance(getattr(jm, name), type)]
    results = {x.__name__ for x in types if issubclass(x, Result)}
    assert results == {x.__name__ for x in types if not issubclass(x, tuple)}


def test_a_table_of_words():
    @dataclasses.dataclass
    class Words(Result):
        yes: np.ndarray

        def _table(self):
            columns = [Column("yes", {"yes": self.yes}, form="plain")]
            return Table("", {"row": [("a", "b"), 1000]}, columns)

    jax.tree_util.register_dataclass(Words)
    assert str(Words(np.array([True, False]))).split() == [
        "row",
        "yes",
        "a,",
        "b",
        "yes",
        "1,000",
        "no",
    ]


def test_no_model_is_named_best_where_nothing_can_be_tested():
    with pytest.warns(UserWarning, match="rests on 1"):
        found = jm.compare(jm.roc_auc, {"a": [0.1, 0.2], "b": [0.1, 0.3]}, [0, 1])
    assert str(found).splitlines()[-1] == "AUC: a 1.000, b 1.000"


def test_the_reference_is_named_in_each_row_and_a_value_in_the_title():
    models = {"a": OLD, "b": NEW, "c": OLD + 0.1 * NEW}
    found = jm.compare(jm.roc_auc, models, LABELS, reference="b")
    _, _, *rows, _ = str(found).splitlines()
    assert [tuple(x.split()[:2]) for x in rows] == [("a", "b"), ("c", "b")]
    frame = found.to_frame()
    np.testing.assert_allclose(frame.estimate - frame.minus_estimate, frame.difference, atol=1e-6)
    assert list(found.named("x", "y", "z").to_frame()["minus"]) == ["y", "y"]
    text = str(jm.compare_to_value(jm.roc_auc, models, LABELS, value=0.5))
    assert text.splitlines()[0] == "Differences of AUC from 0.5"
    assert len(text.splitlines()) == 6


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (-0.106, -0.0004, "-0.1060 to -0.0004"),
        (0.00006, 0.053, "0.0001 to 0.0530"),
        (1e-7, 0.053, "0.000 to 0.053"),
        (0.0, 0.053, "0.000 to 0.053"),
    ],
)
def test_a_limit_does_not_look_like_0(low, high, text):
    """Its sign says whether a difference is significant."""
    interval = jm.Interval((low + high) / 2, low, high, 0.02, "wald", 0.95)
    assert str(interval).split(", ")[1] == f"95 % interval {text}"


def test_single_results_say_what_they_are_of():
    one = jm.compare_to_value(jm.roc_auc, OLD, LABELS, value=0.5)
    assert str(one).endswith(f"AUC {one.estimate:.3f} against 0.5")
    size = jm.sample_size(jm.roc_auc, SCORES, LABELS, difference=0.1, margin=0.02)
    assert str(size).endswith("for a power of 0.8 at a difference of 0.1 and a margin of 0.02")
    assert "for 95 % intervals with a width of 0.1" in str(
        jm.sample_size(jm.roc_auc, OLD, LABELS, width=0.1)
    )
    several = jm.sample_size(jm.roc_auc, SCORES, LABELS, difference=np.array([0.1, 0.2]))
    assert "power" not in str(several)


@pytest.mark.parametrize(("times", "per"), [(None, " per month"), ([1.0, 2, 3], "")])
def test_slopes_are_per_unit_of_time(times, per):
    months = np.repeat(["2026-01", "2026-02", "2026-03"], 20)
    found = jm.trend(jm.slices(jm.roc_auc, SCORES, LABELS, months, min_items=3), times=times)
    assert f"slope of AUC{per}  " in str(found)
    assert f"slope of AUC{per}  " in str(found.models)
    assert "new <b>" in str(found.models)


def test_limits_of_several_values_of_an_option_have_these_as_names():
    labels = np.arange(60) % 3 == 0
    scores = {"old": np.sin(np.arange(60.0)), "new": np.cos(np.arange(60.0)) + labels}
    metric = functools.partial(jm.sensitivity_at_specificity, min_specificity=[0.9, 0.8])
    one = jm.confidence_interval(metric, scores["new"], labels)
    assert one.to_frame()["min_specificity"].tolist() == [0.9, 0.8]
    assert "model" not in str(one)
    assert one.named("90 %", "80 %").to_frame()["min_specificity"].tolist() == ["90 %", "80 %"]
    with pytest.raises(ValueError, match="got 3 names"):
        one.named("a", "b", "c")
    ax = plots.forest(one)
    assert [x.get_text() for x in ax.get_yticklabels()] == [
        "min_specificity=0.9",
        "min_specificity=0.8",
    ]
    narrow = functools.partial(jm.recall_at_fpr, max_fpr=np.float32([0.1, 0.7]))
    found = jm.confidence_interval(narrow, scores["new"], labels)
    assert found.to_frame()["max_fpr"].tolist() == [0.1, 0.7]
    frame = jm.confidence_interval(metric, scores, labels).to_frame()
    assert frame[["model", "min_specificity"]].values.tolist() == [
        [model, limit] for model in ("old", "new") for limit in (0.9, 0.8)
    ]
    resampled = jm.bootstrap(metric, scores, labels, key=jax.random.key(0), n_resamples=20)
    assert str(resampled.interval()).splitlines()[1].startswith("model  min_specificity")


@pytest.mark.parametrize(("scale", "shift"), [(1, 0), (1_000, 0), (1, -1)])
def test_a_threshold_as_it_is_printed_flags_what_was_counted(scale, shift):
    """Scores are thirds: a threshold that is rounded up would flag none of the scores at it."""
    labels = np.repeat([False, True], 100)
    sizes = [60, 25, 10, 5, 5, 15, 40, 40]  # of each third, of negatives and of positives
    scores = np.repeat(np.tile([0, 1 / 3, 2 / 3, 1], 2), sizes) * scale + shift
    for rule in ({"min_recall": 0.9}, {"max_fpr": 0.15}):
        point = jm.operating_point(scores, labels, **rule)
        printed = float(str(point).split()[1])
        assert np.mean(scores >= printed) == pytest.approx(float(point.flagged.estimate))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2 / 3, "0.6666"),
        (-2 / 3, "-0.6667"),
        (np.float32(0.6), "0.6"),  # above 0.6
        (np.nextafter(np.float32(0.6), np.float32(0)), "0.6"),  # the highest below 0.6
        (0.5999, "0.5999"),
        (1999.99, "1,999"),
        (1e-310, "1e-310"),
        (1e300, "1e+300"),
        (np.inf, "inf"),
        (-np.inf, "-inf"),
        (np.nan, "-"),
        (0.0, "0"),
    ],
)
def test_thresholds_are_rounded_down(value, text):
    assert threshold_in_words(float(value), 4) == text
