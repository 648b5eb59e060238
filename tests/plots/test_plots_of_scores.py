"""nDCG by place, calibration, distributions and deciles, read back from the axes."""

import warnings

import numpy as np
import pytest
from axes import NAMES, legend
from scipy.stats import binomtest, norm
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve

import jaxmetrics as jm
from jaxmetrics import plots


def test_ndcg_at_k_draws_the_mean_of_scikit_learns(rankings, ax):
    scores, grades, query = rankings
    plots.ndcg_at_k(scores, grades, segments=query, names=NAMES, max_k=4, ax=ax)
    members = [query == q for q in range(5)]
    for line, row, name in zip(ax.get_lines(), scores, NAMES, strict=True):
        means = [
            np.mean([sk.ndcg_score([grades[m]], [row[m]], k=k) for m in members])
            for k in range(1, 5)
        ]
        np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3, 4])
        np.testing.assert_allclose(line.get_ydata(), means, atol=1e-6)
        assert f"{name}, nDCG@4 {means[-1]:.3f}" in legend(ax)


def test_ndcg_at_k_of_rows_and_with_a_band(rankings, ax):
    scores, grades, query = rankings
    order = np.argsort(query, kind="stable")
    scores, grades = scores[0][order].reshape(6, 7), grades[order].reshape(6, 7)
    low, high = np.full(4, 0.25), np.full(4, 0.75)
    interval = jm.Interval(low, low, high, low, "percentile", 0.9)
    plots.ndcg_at_k(scores, grades, max_k=4, interval=interval, ax=ax)
    assert legend(ax)[0].endswith(" [0.250, 0.750]")
    assert legend(ax)[1] == "90 % pointwise band"
    vertices = ax.collections[0].get_paths()[0].vertices
    assert {*vertices[:, 1]} == {0.25, 0.75}
    with pytest.raises(ValueError, match="for each k from 1 to 3, got 4"):
        plots.ndcg_at_k(scores, grades, max_k=3, interval=interval, ax=ax)
    with pytest.raises(ValueError, match="max_k must be at least 1"):
        plots.ndcg_at_k(scores, grades, max_k=0)
    with pytest.raises(ValueError, match=r"\[queries, docs\] or \[models, queries, docs\]"):
        plots.ndcg_at_k(scores[0], grades[0])


@pytest.fixture
def probabilities(rng):
    labels = rng.random(300) < 0.4
    return rng.beta(2, 3, size=(2, 300)) * 0.7 + 0.3 * labels * rng.random(300), labels


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_calibration_draws_scikit_learns_curve_and_wilsons_limits(probabilities, strategy, ax):
    scores, labels = probabilities
    plots.calibration(scores, labels, names=NAMES, n_bins=5, strategy=strategy, ax=ax)
    lines = ax.get_lines()
    drawn, bars = [line for line in lines if line.get_label()[0] != "_"], lines
    for line, row, text in zip(drawn, scores, legend(ax), strict=False):
        share, mean = calibration_curve(labels, row, n_bins=5, strategy=strategy)
        np.testing.assert_allclose(line.get_xdata(), mean, rtol=1e-6)
        np.testing.assert_allclose(line.get_ydata(), share, rtol=1e-6)
        observed = labels.mean()
        assert text.endswith(f", mean {row.mean():.3f}, observed {observed:.3f}")
        if strategy == "quantile":
            for x, p in zip(mean, share, strict=True):
                limits = binomtest(round(60 * p), 60).proportion_ci(method="wilson")
                (bar,) = (b for b in bars if len(b.get_xdata()) == 2 and b.get_xdata()[0] == x)
                np.testing.assert_allclose(bar.get_ydata(), limits, rtol=1e-6)
    assert legend(ax)[2:] == ["calibrated", "95 % interval"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Mean score", "Share of positives")


def test_calibration_has_the_scores_above(probabilities, ax):
    scores, labels = probabilities
    plots.calibration(scores, labels, n_bins=5, ax=ax)
    (above,) = ax.child_axes
    assert above.get_xlim() == ax.get_xlim()
    for patch, row in zip(above.patches, scores, strict=True):
        values, edges, _ = patch.get_data()
        np.testing.assert_allclose(values, np.histogram(row, edges)[0] / 300)


def test_calibration_with_weights_and_where(probabilities, ax):
    scores, labels = probabilities
    weights, where = np.arange(300) % 3, np.arange(300) % 5 > 0
    odd = np.where(where, scores, [[np.nan], [7.0]])
    plots.calibration(odd, labels, weights=weights, where=where, n_bins=5, ax=ax)
    copies = np.repeat(np.arange(300), weights * where)
    share, mean = calibration_curve(
        labels[copies], scores[1][copies], n_bins=5, strategy="quantile"
    )
    line = next(line for line in ax.get_lines() if line.get_label().startswith("model 1"))
    np.testing.assert_allclose(line.get_xdata(), mean, atol=2e-3)  # one item may be in two bins
    np.testing.assert_allclose(line.get_ydata(), share, atol=3e-2)
    total = np.sum(weights[where])
    observed = np.sum(weights[where] * labels[where]) / total
    assert legend(ax)[1].endswith(f"observed {observed:.3f}")


def test_weights_make_calibration_less_sure(ax):
    """As (sum w)^2 / sum w^2 items would; here of 2 * 16 / 10 = 3.2 of 4, with one bin."""
    weights = np.array([1.0, 1.0, 3.0, 3.0])
    plots.calibration([0.5] * 4, [0, 1, 0, 1], weights=weights, n_bins=1, ax=ax)
    n, z = 64 / 20, norm.ppf(0.975)
    margin = z * np.sqrt(n * 0.25 + z**2 / 4) / (n + z**2)
    bar = ax.get_lines()[1]
    np.testing.assert_allclose(bar.get_ydata(), [0.5 - margin, 0.5 + margin], rtol=1e-6)


def test_calibration_says_which_share_of_the_scores_is_beyond_the_axes(ax):
    """4 of 1,000 scores, and 2 of another model; the limits of the highest bin end below 0.1."""
    rare = np.where(np.arange(1000) < [[4], [2]], 0.9, 0.01)
    plots.calibration(rare, np.zeros(1000), n_bins=1, ax=ax)
    (above,) = ax.child_axes
    assert [x.get_text() for x in above.texts] == ["up to 0.4 % beyond"]


def test_ties_are_in_one_bin(ax):
    plots.calibration([0.1] * 6 + [0.7] * 2, [0, 1] * 4, n_bins=4, ax=ax)
    np.testing.assert_allclose(ax.get_lines()[0].get_xydata(), [[0.1, 0.5], [0.7, 0.5]])


def test_what_calibration_refuses(probabilities):
    with pytest.raises(ValueError, match=r"probabilities in \[0, 1\], got 1.5: write"):
        plots.calibration([0.5, 1.5], [0, 1])
    with pytest.raises(ValueError, match="strategy must be one of"):
        plots.calibration([0.5, 0.5], [0, 1], strategy="even")
    with pytest.raises(ValueError, match="n_bins must be at least 1"):
        plots.calibration([0.5, 0.5], [0, 1], n_bins=0)
    for draw in (plots.calibration, plots.score_distributions):
        with pytest.raises(ValueError, match="n_bins = 100,000,000,000,000 needs 3,200,000 GB"):
            draw([0.5, 0.5], [0, 1], n_bins=10**14)


def test_score_distributions_are_densities_of_each_class(problem, ax):
    scores, labels = problem
    scores = scores.astype(np.float32)
    weights, where = np.arange(300.0), np.arange(300) % 2 == 0
    of = {"weights": weights, "where": where}
    plots.score_distributions(scores[0], labels, names=["no", "yes"], n_bins=7, ax=ax, **of)
    for i, name in enumerate(["no", "yes"]):
        area, outline = ax.patches[2 * i : 2 * i + 2]
        values, edges, _ = outline.get_data()
        members = where & (labels == i)
        whole = scores[0][where]
        np.testing.assert_allclose(edges, np.linspace(whole.min(), whole.max(), 8), atol=1e-6)
        expected, _ = np.histogram(
            scores[0][members], edges, weights=weights[members], density=True
        )
        np.testing.assert_allclose(values, expected, rtol=1e-5)
        np.testing.assert_array_equal(values, area.get_data().values)
        mean = np.average(scores[0][members], weights=weights[members])
        assert legend(ax)[i] == f"{name}, mean {mean:.3f}"
    assert ax.patches[1].get_linestyle() != ax.patches[3].get_linestyle()
    assert ax.patches[2].get_hatch()


def test_infinite_scores_count_in_the_area(ax):
    table = jm.ScoreTable(np.array([np.inf, 2.0, 1.0]), np.array([1, 1, 0]), np.array([0, 1, 1]))
    plots.score_distributions(table, n_bins=2, ax=ax)
    np.testing.assert_allclose(ax.patches[3].get_data().values, [0, 1])
    np.testing.assert_allclose(ax.patches[1].get_data().values, [1, 1])


def test_means_are_of_finite_scores(ax):
    with warnings.catch_warnings(action="error"):
        plots.score_distributions([-np.inf, 1.0, 2.0, np.inf], [0, 0, 1, 0], ax=ax)
    assert ax.get_legend_handles_labels()[1] == ["negative, mean -", "positive, mean 2.000"]
    plots.score_distributions([-np.inf, *np.ones(99), 2.0], np.arange(101) == 100, ax=ax)
    assert "negative, mean of finite scores 1.000" in ax.get_legend_handles_labels()[1]


@pytest.mark.parametrize(
    ("unit", "mean"), [(1e-12, "2.5e-12"), (1e-30, "2.5e-30"), (1e30, "2.5e+30")]
)
def test_means_of_tiny_and_huge_scores_have_an_exponent(unit, mean, ax):
    plots.score_distributions(np.arange(1.0, 5.0) * unit, [1, 0, 0, 1], ax=ax)
    assert ax.get_legend_handles_labels()[1][1] == f"positive, mean {mean}"


@pytest.mark.parametrize("draw", [plots.roc, plots.precision_recall, plots.det])
def test_a_model_without_a_curve_is_not_drawn_in_print_either(draw, problem, ax):
    scores, labels = problem
    scores = scores.astype(float)
    scores[1, 3] = np.nan
    draw(scores, labels, names=[2024, 2025], style="print", ax=ax)
    ax.figure.draw_without_rendering()
    assert any(text.startswith("2025, ") and text.endswith(" -") for text in legend(ax))


def test_ndcg_of_a_nan_score_is_no_mean_of_the_other_queries(ax):
    grades, scores = np.eye(3), np.array([[3, 2, 1.0]] * 3)
    failed = scores.copy()
    failed[2, 0] = np.nan
    plots.ndcg_at_k(np.stack([scores, failed]), grades, names=["a", "b"], max_k=3, ax=ax)
    assert ax.get_legend_handles_labels()[1] == ["a, nDCG@3 0.710", "b, nDCG@3 -"]


def test_the_lowest_bin_of_a_stream_has_no_place_in_a_mean(rng, ax):
    scores, labels = rng.normal(1000, 1, 2000).astype(np.float32), np.arange(2000) % 2
    bins = jm.streaming.quantile_bins(scores, 256)
    state = jm.streaming.update(jm.streaming.init(bins), scores, labels, bins=bins)
    plots.score_distributions(jm.streaming.table(state, bins=bins), ax=ax)
    for text in ax.get_legend_handles_labels()[1]:
        assert abs(float(text.split()[-1].replace(",", "")) - 1000) < 0.2


def test_what_score_distributions_refuse(problem):
    with pytest.raises(ValueError, match="scores must be of one model, got 2"):
        plots.score_distributions(*problem)
    with pytest.raises(ValueError, match="names must have one name a class, 2 in all"):
        plots.score_distributions(problem[0][0], problem[1], names=["positive"])


@pytest.fixture
def by_decile():
    values = np.arange(20.0).reshape(2, 10) / 20
    values[0, 3] = values[1, 9] = np.nan
    return values


def centres(ax):
    return np.array([bar.get_x() + bar.get_width() / 2 for bar in ax.patches])


def test_deciles_are_bars_from_ten_to_one(by_decile, ax):
    assert plots.deciles(by_decile, names=NAMES, metric="nDCG at 5", ax=ax) is ax
    groups = np.round(centres(ax)).astype(int) - 1
    heights = [bar.get_height() for bar in ax.patches]
    there = ~np.isnan(by_decile)
    np.testing.assert_array_equal(groups, np.concatenate([np.flatnonzero(x) for x in there]))
    np.testing.assert_array_equal(heights, by_decile[there])
    (crosses,) = ax.get_lines()
    np.testing.assert_allclose(crosses.get_xdata(), [4.2, 9.8])  # the first model on the left
    assert ax.get_xlim()[0] > ax.get_xlim()[1]
    assert legend(ax) == ["one", "two", "no value"]
    assert len({bar.get_hatch() for bar in ax.patches}) == 2
    assert ax.get_ylabel() == "nDCG at 5"


def test_deciles_of_an_interval_have_its_limits(by_decile, ax):
    interval = jm.Interval(by_decile, by_decile - 0.1, by_decile + 0.2, by_decile, "auto", 0.9)
    plots.deciles(interval, ax=ax)
    bars = [line.get_xydata() for line in ax.get_lines() if len(line.get_xdata()) == 2][:18]
    np.testing.assert_allclose([bar[0, 0] for bar in bars], centres(ax))
    expected = by_decile[~np.isnan(by_decile)]
    np.testing.assert_allclose(
        [bar[:, 1] for bar in bars], np.array([expected - 0.1, expected + 0.2]).T
    )
    assert legend(ax) == ["model 0", "model 1", "90 % interval", "no value"]


def test_what_deciles_refuse(by_decile):
    with pytest.raises(ValueError, match=r"\[10\] or \[models, 10\], one a decile, got \[2, 9\]"):
        plots.deciles(by_decile[:, 1:])
    with pytest.raises(ValueError, match="names must have one name a model, 2 in all"):
        plots.deciles(by_decile, names=["one"])


def test_the_lowest_number_is_drawn_as_an_infinite_score_is(ax):
    """It stands for items that are left out in some files; the length of such an axis overflows."""
    scores, labels = [np.finfo(float).min, 0.2, 0.4, 0.9], [0, 0, 1, 1]
    plots.score_distributions(scores, labels, ax=ax)
    assert 0 < ax.get_xlim()[1] < 2
    plots.cost(scores, labels, fp_cost=1, fn_cost=1).figure.canvas.draw()


def test_calibration_of_rare_positives_has_digits(ax):
    plots.calibration(np.full(10_000, 4e-4), np.arange(10_000) < 4, ax=ax)
    assert "mean 0.00040, observed 0.00040" in ax.get_legend_handles_labels()[1][0]
