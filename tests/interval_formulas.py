"""The written formulas of intervals, by NumPy and SciPy: what the rules are tested against."""

import itertools

import numpy as np
from scipy import integrate, optimize, special, stats


def welch(parts, sizes):
    """The degrees of freedom of a sum of variances of two classes, at least 1."""
    parts, sizes = np.asarray(parts, float), np.asarray(sizes, float)
    return max(parts.sum() ** 2 / np.sum(parts**2 / (sizes - 1)), 1.0)


def on_logit(centre, variance, df, level):
    margin = stats.t.ppf((1 + level) / 2, df) * np.sqrt(variance) / (centre * (1 - centre))
    return special.expit(special.logit(centre) + np.array([-margin, margin]))


def logit_t(estimate, variances, sizes, level=0.95, kurtosis=3):
    """With the kurtosis of the influence of the negatives."""
    parts = np.array(variances) / sizes
    n0, n1 = sizes
    spread = parts[0] ** 2 * (kurtosis - 1) / 2 / (n0 - 1) + parts[1] ** 2 / (n1 - 1)
    return on_logit(estimate, parts.sum(), max(parts.sum() ** 2 / spread, 1), level)


def jeffreys(successes, n, level):
    alpha = 1 - level
    return stats.beta.ppf([alpha / 2, 1 - alpha / 2], successes + 0.5, n - successes + 0.5)


def wilson(estimate, n, level):
    z = stats.norm.ppf((1 + level) / 2)
    middle = (estimate + z**2 / (2 * n)) / (1 + z**2 / n)
    margin = z / (1 + z**2 / n) * np.sqrt(estimate * (1 - estimate) / n + z**2 / (4 * n**2))
    return np.array([middle - margin, middle + margin])


def of_few_failures(limits, share, n, fewest, level):
    """The limits, and with a weight those of Jeffreys where these are further away."""
    low, high = limits
    least, most = jeffreys(n * share, n, level)
    of_failures, of_successes = (
        np.clip((fewest[1] - count) / (fewest[1] - fewest[0]), 0, 1)
        for count in (n * (1 - share), n * share)
    )
    low = (1 - of_failures) * low + of_failures * min(low, least)
    high = (1 - of_successes) * high + of_successes * max(high, most)
    return np.array([low, high])


def shape_of_beta(mean, rho):
    """The skewness and the kurtosis of the Beta with the variance rho mean (1 - mean)."""
    skewness, excess = stats.beta(mean * (1 / rho - 1), (1 - mean) * (1 / rho - 1)).stats("sk")
    return float(skewness), float(excess) + 3


def auc(estimate, variances, sizes, level):
    """For an estimate between 0 and 1 and two items of each class or more."""
    a, u = estimate, estimate * (1 - estimate)
    variance = spread = third = 0.0
    for s2, n in zip(variances, sizes, strict=True):
        rho = min(s2 / u, 1)
        rho += (1 - rho) / (8 * n)
        skewness, kurtosis = shape_of_beta(a, rho)
        part = rho * u / n
        variance += part
        third += skewness * part**1.5 / np.sqrt(n)
        spread += part**2 * (kurtosis - 1 - skewness**2 / 2) / 2 / (n - 1)
    t = stats.t.ppf((1 + level) / 2, max(variance**2 / spread, 4))
    skewness, scale = third / variance**1.5, np.sqrt(variance) / u
    bend = skewness / 3 + scale * (2 * a - 1) / 2
    near = t + abs(2 * a - 1) * (stats.norm.ppf((1 + level) / 2) - t)
    quantiles = (t, -near) if a > 0.5 else (near, -t)
    quantiles = (of_skewed(x, skewness, bend) for x in quantiles)
    low, high = (special.expit(special.logit(a) - scale * x) for x in quantiles)
    n0, n1 = sizes
    least, most = wilson(a, n0 * n1 / (n0 + n1), level)
    low, high = max(low, least), min(high, most)
    low, high = of_whole_failures((low, high), a, variances, sizes, level)
    return np.array([min(low, a), max(high, a)])


def of_skewed(x, skewness, bend):
    y = x - skewness / 6
    bent = abs(bend * y)
    return y * (1 + bent) if bend * y < 0 else y / (1 + bent)


def of_whole_failures(limits, share, variances, sizes, level):
    """The furthest of the limits for each class."""
    (low, high), lows, highs = limits, [], []
    for s2, n in zip(variances, sizes, strict=True):
        counts = [n * s2 / x**2 for x in (share, 1 - share)]
        added = [1 / 3 if f > 1e-12 else 1 / 2 for f in counts]
        shapes = [(min(f, n) + x, n - min(f, n) + x) for f, x in zip(counts, added, strict=True)]
        most = [stats.beta.ppf((1 + level) / 2, *x) for x in shapes]
        excess = [max(x - min(f, n) / n, 0) for x, f in zip(most, counts, strict=True)]
        weights = [np.clip(2 - f / 50, 0, 1) for f in counts]
        lower, upper = share * (1 - excess[0]), 1 - (1 - share) * (1 - excess[1])
        lows.append(low + weights[0] * (min(low, lower) - low))
        highs.append(high + weights[1] * (max(high, upper) - high))
    return np.array([min(*lows, low), max(*highs, high)])


def of_rare_items(limits, share, variances, sizes, level):
    """The furthest of the limits for each class."""
    (low, high), lows, highs = limits, [], []
    for s2, n in zip(variances, sizes, strict=True):
        least = jeffreys(n, n, level)[0]  # of n successes of n
        of_failures, of_successes = (
            np.clip(2 - 50 * n * s2 / x**2, 0, 1) for x in (share, 1 - share)
        )
        lows.append(low + of_failures * (min(low, share * least) - low))
        highs.append(high + of_successes * (max(high, 1 - (1 - share) * least) - high))
    return np.array([min(*lows, low), max(*highs, high)])


def power(area, max_fpr):
    return min((0.55 + 0.65 * np.sqrt(max_fpr)) * (1 - area), 1)


def centre_of_window(area, sizes, max_fpr, height):
    m, h = sizes[0] * max_fpr, power(area, max_fpr)
    observed = height * np.clip(height / area - 1, 0, 1)
    end = (m * observed + 2 * area * (1 + h) * h) / (m + 2)
    return area - min(end * (1 - max_fpr) / (2 * m), area / 2)


def area_variance(area, t):
    h = power(area, t)
    return (area * h) ** 2 * (2 * (1 + h) / (1 + 2 * h) - t) / t


def partial_auc(estimate, variances, sizes, level, max_fpr, height):
    """As `auc`, of the divided area."""
    n0, n1 = sizes
    m, u = n0 * max_fpr, estimate * (1 - estimate)
    centre = centre_of_window(estimate, sizes, max_fpr, height)
    rho = min(variances[1] / u, 1)
    rho += (1 / 3 + 2 / 3 * estimate) / n1 * (1 - rho)
    skewness, kurtosis = shape_of_beta(centre, rho)
    of_positives = rho * centre * (1 - centre) / n1
    h = power(centre, max_fpr)
    of_negatives = (m * variances[0] + 2 * area_variance(centre, max_fpr)) / (m + 2) / n0
    variance = of_negatives + of_positives
    spread = of_positives**2 * (kurtosis - 1 - skewness**2) / 2 / (n1 - 1)
    spread += of_negatives**2 / (m + 4)
    skewness = power_law_skewness(h, max_fpr) / np.sqrt(n0) / 2 * (of_negatives / variance) ** 1.5
    t = stats.t.ppf((1 + level) / 2, max(variance**2 / spread, 4))
    scale = np.sqrt(variance) / (centre * (1 - centre))
    below, above = (of_skewed(x, skewness, skewness / 3) for x in (t, -t))
    above = min(above, -stats.norm.ppf((1 + level) / 2))
    low, high = (special.expit(special.logit(centre) - scale * x) for x in (below, above))
    least, most = wilson(centre, n1 * m / (n1 + m), level)
    found = of_few_failures((max(low, least), min(high, most)), estimate, n1, (1, 1.5), level)
    found = of_few_failures(found, estimate, min(n1, m), (0.25, 0.375), level)
    missed = min(n1, m) * (1 - estimate)
    lowest = max(0, 1 - (1 - jeffreys(n0, n0, level)[0]) / max_fpr)
    found[0] += np.clip(3 - 8 * missed, 0, 1) * min(lowest - found[0], 0)
    found = of_rare_items(found, estimate, variances[1:], sizes[1:], level)
    return np.array([min(found[0], estimate), max(found[1], estimate)])


def power_law_skewness(h, max_fpr):
    """Of ((u / max_fpr)^h - 1) / h for a negative with the FPR u = max_fpr e^-x, and 0 outside."""

    def moment(k):
        def weighed(x):
            return (np.expm1(-h * x) / h) ** k * np.exp(-x)

        return max_fpr * integrate.quad(weighed, 0, np.inf, epsabs=0, epsrel=1e-11)[0]

    first, second, third = map(moment, (1, 2, 3))
    return (third - 3 * first * second + 2 * first**3) / (second - first**2) ** 1.5


def precision_of_odds(odds, start=0.0):
    """The mean precision of the positives from the share `start` on, with the negatives above."""
    return integrate.quad(lambda t: t / (t + odds), start, 1, epsabs=1e-14, epsrel=1e-13)[0]


def share_above(area, odds):
    """The share of the positives above all negatives, if the rest is below, that has the area."""
    if area <= precision_of_odds(odds):
        return 0.0
    return optimize.brentq(
        lambda p: p + precision_of_odds(odds, p) - area, 0, 1, xtol=1e-15, rtol=1e-14
    )


def average_precision(estimate, variances, sizes, level, without_itself):
    """With the odds n0 / n1, as there are no weights, and an estimate between 0 and 1."""
    (n0, n1), logit = sizes, special.logit
    odds = n0 / n1
    low = high = estimate
    if max(variances) > 0:
        low, high = logit_t(estimate, variances, sizes, level, kurtosis=21)
        if estimate > 0.5:  # the t quantile of the upper limit moves to the normal one
            t, z = (special.logit(high) - logit(estimate)), stats.norm.ppf((1 + level) / 2)
            z *= np.sqrt(sum(np.array(variances) / sizes)) / (estimate * (1 - estimate))
            high = special.expit(logit(estimate) + t + (2 * estimate - 1) * (z - t))
    low = min(low, special.expit(logit(without_itself) - (logit(estimate) - logit(low))))
    reverse = precision_of_odds(odds)
    share = (estimate - reverse) / (1 - reverse)
    if 0 < share < 1:
        scaled = [(x - reverse) / (1 - reverse) for x in (low, high)]
        scaled_variances = np.array(variances) / (1 - reverse) ** 2
        scaled = of_rare_items(scaled, share, scaled_variances, sizes, level)
        scaled[0] = of_rare_items(scaled, share, scaled_variances[1:], [n1 / 2], level)[0]
        low, high = reverse + (1 - reverse) * scaled
    all_of_negatives = jeffreys(n0, n0, level)[0]
    k, above = n1 * estimate, n1 * share_above(estimate, odds)
    p = jeffreys(above, n1, level)[1]
    most = max(high, p + precision_of_odds(odds, p), precision_of_odds(odds * all_of_negatives))
    few = max(np.clip((6 - k) / 2, 0, 1), np.clip(2 - above, 0, 1))
    high += few * (most - high)
    low += np.clip(2 - 2 * (n1 - k), 0, 1) * (min(low, jeffreys(k, n1, level)[0]) - low)
    low = of_high_negatives(low, estimate, variances, sizes, level)
    return np.array([min(max(low, reverse), estimate), max(high, estimate)])


def of_high_negatives(low, estimate, variances, sizes, level):
    if variances[0] == 0:
        return low
    n0, n1 = sizes
    variance, of_positives = np.array(variances) / sizes

    def lost(high):
        return estimate * (1 - precision_of_odds(high / n1))

    count = min(variance / lost(1) ** 2, n0)
    most = n0 * stats.beta.ppf((1 + level) / 2, count + 1 / 3, n0 - count + 1 / 3)
    squares = [(estimate - low) ** 2, (lost(most) - lost(count)) ** 2]
    share = variance / (variance + of_positives)
    lowered = estimate - np.sqrt((1 - share) * squares[0] + share * max(squares))
    return low + np.clip(2 - count / 50, 0, 1) * (lowered - low)


def precision_without_itself(positives, negatives):
    caught = (positives >= positives[:, None]).sum(1) - 0.5
    return np.mean(caught / (caught + (negatives >= positives[:, None]).sum(1)))


def height(positives, negatives, fpr):
    """The largest TPR at an FPR of at most `fpr`."""
    thresholds = [np.inf, *np.concatenate([positives, negatives])]
    within = [x for x in thresholds if np.mean(negatives >= x) <= fpr + 1e-12]
    return max(np.mean(positives >= x) for x in within)


def around_limit(max_fpr, n0):
    d = min(max_fpr / 2, np.sqrt(max_fpr * (1 - max_fpr) / n0))
    return max_fpr - d, min(max_fpr + d, 1)


def squared_slope(positives, negatives, max_fpr):
    """S of the ROC curve at the limit; the window must not be perfect, nor empty."""
    n0, n1 = len(negatives), len(positives)
    low, high = around_limit(max_fpr, n0)
    m = n0 * (high - low)
    slope = (height(positives, negatives, high) - height(positives, negatives, low)) / (high - low)
    area = divided_area(positives, negatives, max_fpr)
    centre = centre_of_window(area, (n0, n1), max_fpr, middle(positives, negatives, max_fpr))
    h = power(centre, max_fpr)
    return (m * slope**2 + 2 * (centre * (1 + h) * h / max_fpr) ** 2) / (m + 2)


def middle(positives, negatives, max_fpr):
    at, before = (height(positives, negatives, max_fpr - x) for x in (0, 1e-6))
    return (at + before) / 2


def divided_area(positives, negatives, max_fpr):
    """The partial area by the trapezoids between thresholds, divided by `max_fpr`."""
    thresholds = np.unique(np.concatenate([positives, negatives]))[::-1][:, None]
    fpr, tpr = (np.append(0, np.mean(x >= thresholds, 1)) for x in (negatives, positives))
    grid = np.unique(np.append(fpr[fpr <= max_fpr], max_fpr))
    total = 0.0
    for u, v in itertools.pairwise(grid):  # between them the curve is a line
        left, right = np.flatnonzero(fpr <= u + 1e-12)[-1], np.flatnonzero(fpr >= v - 1e-12)[0]
        line = np.interp([u, v], fpr[[left, right]], tpr[[left, right]])
        total += (v - u) * line.mean()
    return total / max_fpr


def recall_of_slope(positives, negatives, max_fpr, level):
    n0, n1, share = len(negatives), len(positives), middle(positives, negatives, max_fpr)
    p = (n1 * share + 0.5) / (n1 + 1)
    of_threshold = squared_slope(positives, negatives, max_fpr) * max_fpr * (1 - max_fpr) / n0
    n = min(p * (1 - p) / (p * (1 - p) / n1 + of_threshold), n1)
    low, high = wilson(share, n, level)
    least, most = jeffreys(n * share, n, level)
    of_few, of_many = (np.clip(3 - n1 * x, 0, 1) for x in (share, 1 - share))
    low, high = low + of_few * (min(low, least) - low), high + of_many * (max(high, most) - high)
    at = height(positives, negatives, max_fpr)
    return np.array([min(low, at), max(high, at)])


def recall_box(positives, negatives, max_fpr, level):
    n0, n1 = len(negatives), len(positives)
    tail = stats.norm.sf(0.46 * stats.norm.isf((1 - level) / 2) ** 1.5)
    q, order = min(2 * (1 - level), tail), np.sort(negatives)[::-1]
    fewest, most = (int(stats.binom.ppf(x, n0, max_fpr)) for x in (q, 1 - q))
    low, high = 0.0, 1.0
    if fewest > 0 and (least := (positives > order[fewest - 1]).sum()):
        low = stats.beta.ppf(q, least + 0.5, n1 - least + 0.5)
    last = (positives > order[most - 1]).sum() if most > 0 else 0
    step = max(2 * n1 * np.sqrt(squared_slope(positives, negatives, max_fpr)) / n0, 1)
    above = (positives > order[most]).sum() if most < n0 else n1
    if most < n0 and (greatest := above - min(above - last, step) / 2) < n1:
        high = stats.beta.ppf(1 - q, greatest + 0.5, n1 - greatest + 0.5)
    return np.array([low, high])


def recall_furthest(positives, negatives, max_fpr, level):
    """Of numbers of negatives, and shares of positives, each beyond a fortieth of alpha."""
    n0, n1 = len(negatives), len(positives)
    q, order = (1 - level) / 40, np.sort(negatives)[::-1]
    fewest, most = (int(stats.binom.ppf(x, n0, max_fpr)) for x in (q, 1 - q))
    low, high = 0.0, 1.0
    if fewest > 0 and (least := (positives > order[fewest - 1]).sum()):
        low = stats.beta.ppf(q, least + 0.5, n1 - least + 0.5)
    if most < n0 and (above := (positives > order[most]).sum()) < n1:
        high = stats.beta.ppf(1 - q, above + 0.5, n1 - above + 0.5)
    return np.array([low, high])


def recall(positives, negatives, max_fpr, level):
    """The hull of the first two, not beyond the third."""
    rules = recall_of_slope, recall_box, recall_furthest
    given = positives, negatives, max_fpr, level
    (low, high), (least, most), (lowest, highest) = (f(*given) for f in rules)
    at = height(positives, negatives, max_fpr)
    low, high = max(min(low, least), lowest), min(max(high, most), highest)
    return np.array([min(low, at), max(high, at)])


def kept_and_df(weights):
    """Of the quadratic form sum p^2 (x - mean)^2 of units that vary alike."""
    p = weights[weights > 0] / weights.sum()
    from_mean = p[:, None] * (np.eye(len(p)) - p)
    form = from_mean.T @ from_mean
    return np.trace(form) / np.sum(p**2), np.trace(form) ** 2 / np.trace(form @ form)


def weights_of_clusters(labels, clusters, weights=1.0):
    """Of negatives and of positives, `[2, clusters]`, and the share of clusters with both."""
    by_item = np.broadcast_to(weights, labels.shape)
    found = np.array(
        [np.bincount(clusters, by_item * (labels == kind)) for kind in (False, True)], float
    )
    return found, found[:, (found > 0).all(axis=0)].sum() / found.sum()


def sums_of_clusters(phi, labels, clusters, weights=1.0):
    """Of negatives and of positives, `[2, clusters]`, centred over the clusters with such items,
    over the root of the part of the variance kept; of influence values with a mean of 0."""
    of_classes, mixed = weights_of_clusters(labels, clusters, weights)
    together = kept_and_df(of_classes.sum(axis=0))[0]
    sums = []
    for kind, weight in zip((False, True), of_classes, strict=True):
        of_kind = np.where(labels == kind, phi * weights, 0.0) / weight.sum()
        found, held = np.bincount(clusters, of_kind), weight > 0
        kept = (1 - mixed) * kept_and_df(weight)[0] + mixed * together
        sums.append(np.where(held, (found - found[held].mean()) / np.sqrt(kept), 0.0))
    return np.array(sums)


def draws_of_clusters(estimate, phi, labels, clusters):
    """The independent negatives, and positives, that vary as much as their clusters."""
    sums = np.asarray(sums_of_clusters(phi, labels, clusters))
    parts = (sums**2).sum(axis=1)
    r = (sums.sum(axis=0) ** 2).sum() / parts.sum()
    found = []
    for of_class, v in zip((~labels, labels), parts, strict=True):
        n, counts = of_class.sum(), np.bincount(clusters[of_class])
        k = n**2 / (counts**2).sum()
        alone = np.clip((phi[of_class] ** 2).sum() / (n * (n - 1)), v * k / n, v)
        q = (max(estimate, 1 - estimate) / k) ** 2 / 12
        found.append(np.clip(n * (alone + q * k / n) / (v + q) / max(r, np.sqrt(r)), k, n))
    return found


def degrees_of_clusters(v0, v1, variance, labels, clusters):
    weights, mixed = weights_of_clusters(labels, clusters)
    df0, df1, df = (kept_and_df(x)[1] for x in (*weights, weights.sum(axis=0)))
    apart = v1**2 / df1 + v0**2 / df0
    together = variance**2 / min(df, (v0 + v1) ** 2 / apart)
    return max(variance**2 / ((1 - mixed) * apart + mixed * together), 1)


def logit_t_of_clusters(estimate, phi, labels, clusters, level):
    sums = sums_of_clusters(phi, labels, clusters)
    v0, v1 = np.sum(sums**2, axis=1)
    variance = v1 + v0 + 2 * np.sum(sums[0] * sums[1])
    df = degrees_of_clusters(v0, v1, variance, labels, clusters)
    return on_logit(estimate, variance, df, level), np.sqrt(variance)
