"""What the tests of the command share."""

# As many items, models, limits and resamples as the demonstration has here, so that the tests
# share what JAX compiles.
N = 899
NAMES = ("a", "b", "c")
FEW = ("--n-resamples", "40")
SCORES = ("--score", "a", "--score", "b", "--score", "c", "--max-fpr", "0.02", *FEW)
ALL = ("--label", "y", *SCORES, "--amount", "amount")


def values_of(metrics):
    """The estimates without their intervals."""
    if "value" in metrics:
        return metrics["value"]
    return {key: values_of(value) for key, value in metrics.items()}


def estimates(metrics):
    """Every estimate with its interval."""
    if "value" in metrics:
        return [metrics]
    return [estimate for value in metrics.values() for estimate in estimates(value)]
