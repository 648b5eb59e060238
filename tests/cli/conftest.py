"""The files that the command reads, and what it says of them."""

import numpy as np
import pandas as pd
import pytest
from command import evaluated, run
from evaluations import ALL, FEW, NAMES, SCORES, N


@pytest.fixture(scope="session")
def data():
    rng = np.random.default_rng(8)
    y = rng.random(N) < 0.2
    return pd.DataFrame(
        {
            "y": y.astype(int),
            "answer": np.where(y, "yes", "no"),
            "a": rng.normal(size=N) + y,
            "b": np.round(rng.normal(size=N) + 2 * y, 1),  # with ties
            "c": np.round(rng.normal(size=N), 3) + 1.9 * y,
            "few": (np.arange(N) % 150 == 0).astype(int),
            "nothing": 0,
            "amount": np.round(rng.gamma(2, 50, N), 2),
            "w": rng.integers(0, 4, N) / 2,
            "user": rng.integers(0, 150, N),
            "unused": "text",
        }
    )


@pytest.fixture(scope="session")
def folder(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    data = data.copy()
    data["name"] = [f"user {i}" for i in data["user"]]
    data["half"] = data["user"] / 2
    data["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(data["user"], "D")
    data.to_csv(folder / "data.csv", index=False)
    data.to_csv(folder / "data.csv.gz", index=False)
    data.to_parquet(folder / "data.parquet")
    np.savez(
        folder / "data.npz", **{k: data[k].to_numpy() for k in data if data[k].dtype.kind in "if"}
    )
    return folder


@pytest.fixture(scope="session")
def report(folder):
    return evaluated(folder / "data.csv", *ALL, "--seed", 3)


@pytest.fixture(scope="session")
def perfect(data, folder):
    """The arguments for a file of perfect models and few positives."""
    scores = data[list(NAMES)] + 20 * data[["few"]].to_numpy()
    data.assign(**scores).to_csv(folder / "perfect.csv", index=False)
    return folder / "perfect.csv", "--label", "few", *SCORES


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    output = tmp_path_factory.mktemp("demo") / "some" / "folder"
    return run("demo", "--output", output, "--json", "--max-fpr", 0.02, *FEW), output
