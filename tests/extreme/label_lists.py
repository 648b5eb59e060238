"""Random lists of labels, and metrics of them in plain Python."""

from math import log2

import numpy as np

N_LABELS, N_GROUPS = 40, 4


def lists(seed=0, n=60, listed=12, relevant=6):
    """Lists of several lengths, some of them empty, and labels in groups, one of them empty."""
    rng = np.random.default_rng(seed)

    def draw(columns, lengths):
        ids = rng.permuted(np.tile(np.arange(N_LABELS), (n, 1)), axis=1)[:, :columns]
        return np.where(np.arange(columns) < lengths[:, None], ids, -1)

    predicted = draw(listed, rng.integers(0, listed + 1, n))
    truth = rng.permuted(draw(relevant, rng.integers(0, relevant + 1, n)), axis=1)
    groups = rng.choice([0, 1, 3], N_LABELS)
    return predicted, truth, groups


PREDICTED, RELEVANT, GROUPS = lists()
PROPENSITIES = np.random.default_rng(1).uniform(0.05, 1, N_LABELS)
BY_GROUP = {"groups": GROUPS, "num_groups": N_GROUPS}
KS = (1, 2, 5, 50)


# Plain Python. Each takes the list and the labels of one instance, of one group.


def precision(listed, wanted, k):
    return sum(x in wanted for x in listed[:k]) / max(len(listed[:k]), 1)


def recall(listed, wanted, k):
    return sum(x in wanted for x in listed[:k]) / min(k, len(wanted))


def ndcg(listed, wanted, k, ideal=None):
    gain = sum(1 / log2(i + 2) for i, x in enumerate(listed[:k]) if x in wanted)
    return gain / sum(1 / log2(i + 2) for i in range(min(ideal or len(wanted), len(wanted))))


def instances(score, by_group):
    """`[n, num_groups]`, or one group; None where nothing is relevant."""
    members = np.eye(N_GROUPS, dtype=bool)[:, GROUPS] if by_group else [GROUPS >= 0]
    rows = []
    for predicted, relevant in zip(PREDICTED, RELEVANT, strict=True):
        row = []
        for member in members:
            wanted = {x for x in relevant if x >= 0 and member[x]}
            listed = [x for x in predicted if x >= 0 and member[x]]
            row.append(score(listed, wanted) if wanted else None)
        rows.append(row)
    return rows
