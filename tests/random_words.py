"""Random words of a key."""

import jax
import numpy as np
from scipy import stats

import jaxmetrics as jm
from jaxmetrics._base.double import double_precision

KEY = jax.random.key(11)
N = 300
N_RESAMPLES = 6000


def doubled(function, *args):
    """The result of `function`, compiled, on the host."""
    with double_precision():
        return jax.tree.map(np.asarray, jax.jit(function)(*args))


def frequencies_fit(values, law, least=8):
    """A chi-squared test that counts follow a law, of which rare values are put together."""
    values = np.asarray(values).ravel().astype(int)
    support = np.arange(values.max() + 2)
    expected = law.pmf(support) * values.size
    common = expected >= least
    observed = np.bincount(values, minlength=len(support))
    observed = np.append(observed[common], values.size - observed[common].sum())
    expected = np.append(expected[common], values.size - expected[common].sum())
    if expected[-1] < least:  # too rare to be tested, but not to be seen
        assert observed[-1] <= 5 * least
        observed, expected = observed[:-1], expected[:-1] * observed[:-1].sum() / sum(expected[:-1])
    if len(observed) > 1:
        assert stats.chisquare(observed, expected).pvalue > 1e-4
    else:
        assert observed.sum() == values.size


# ---- counts of items


def counted(table):
    """How often the items of each row are drawn."""
    return table.positives + table.negatives


def counts(scores, labels, n_resamples=N_RESAMPLES, key=KEY, **options):
    """Counts `[1 + n_resamples, rows]` by falling score; the first are of the data."""
    result = jm.bootstrap(counted, scores, labels, key=key, n_resamples=n_resamples, **options)
    return np.concatenate([np.asarray(result.estimate)[None], result.replicates]).astype(float)
