"""Five items."""

import jax

SCORES = [0.1, 0.4, 0.35, 0.8, 0.6]
LABELS = [0, 0, 1, 1, 0]
KEY = jax.random.key(0)
