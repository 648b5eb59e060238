"""What can be known of accelerators without one: every function lowers, and their ways agree."""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fast import marked

import jaxmetrics as jm
from benchmarks.accelerators import counted
from benchmarks.device import rows
from benchmarks.programs import ON_THE_HOST, programs
from jaxmetrics._base.numerics import next_above
from jaxmetrics.streaming._counts import counted as counted_slots

ROOT = Path(__file__).parents[1]
_UNKNOWN_TO_TPUS = re.compile(
    r"(reduce_precision|next_after)[^\n]*f64|"
    r'"stablehlo.reduce_window"(?:(?!\}\) :).)*\}\) : \(tensor<[^>]*f64',
    re.DOTALL,
)


@pytest.fixture
def fresh_traces():
    """JAX keeps what it traced, and that depends on the backend."""
    jax.clear_caches()
    yield
    jax.clear_caches()


def test_every_public_function_has_a_program():
    rooms = {"": jm, "losses.": jm.losses, "streaming.": jm.streaming, "extreme.": jm.extreme}
    public = {
        prefix + name
        for prefix, room in rooms.items()
        for name in room.__all__
        if name[0].islower() and callable(getattr(room, name))
    }
    compiled = {
        name.removeprefix("gradient of ").split(" ")[0].strip(",") for name in programs(200)
    }
    assert public - compiled == ON_THE_HOST
    assert not compiled & ON_THE_HOST


@pytest.mark.parametrize(
    ("backend", "platform", "every"),
    [
        ("tpu", "tpu", 5),
        ("gpu", "cuda", 12),
        *(marked(*x, 1, fast=False) for x in (("tpu", "tpu"), ("gpu", "cuda"))),
    ],
)
def test_every_function_lowers(backend, platform, every, monkeypatch, fresh_traces):
    """No plug-in is needed for this, and none compiles it. What TPUs lower, cards do, too."""
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    for name, program in list(programs(200).items())[::every]:
        traced = jax.jit(program.function).trace(*program.arguments)
        try:
            lowered = traced.lower(lowering_platforms=(platform,)).as_text()
        except Exception as error:
            raise AssertionError(f"{name} does not lower for {platform}") from error
        # XLA for TPUs compiles none of these of 64-bit floats, or not within minutes.
        assert backend == "gpu" or not _UNKNOWN_TO_TPUS.search(lowered), name


def test_the_way_of_tpus_gives_the_same(rng, monkeypatch):
    """Scans of 64-bit floats in blocks, of several levels."""
    n = 70_001
    scores = rng.normal(size=n).round(3).astype(np.float32)
    labels, weights = rng.random(n) < 0.3, rng.random(n)

    def values(scores, labels, weights):
        auc = partial(jm.roc_auc, weights=weights)
        slope = jax.grad(lambda w: jm.partial_auc(scores, labels, weights=w, max_fpr=0.2))
        error = jm.standard_error(jm.roc_auc, scores, labels)
        return auc(scores, labels), error, slope(weights)

    with jax.enable_x64(True):
        arrays = [jnp.asarray(x) for x in (scores, labels, weights)]
        expected = jax.jit(values)(*arrays)
        jax.clear_caches()
        monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
        traced = jax.jit(lambda *x: values(*x)).trace(*arrays)
        monkeypatch.undo()
        lowered = traced.lower()
        assert lowered.as_text() != jax.jit(values).lower(*arrays).as_text()
        found = lowered.compile()(*arrays)
        jax.clear_caches()
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-18)


def test_counts_digit_by_digit(rng, monkeypatch):
    sums = rng.integers(0, 1 << 16, (50, 2)).astype(np.int32)
    sums[:5, 0] = (1 << 16) - 1
    slots = rng.integers(0, 55, 1000).astype(np.int32)  # some are out of range
    expected = counted_slots(jnp.asarray(sums), jnp.asarray(slots))
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    np.testing.assert_array_equal(counted_slots(jnp.asarray(sums), jnp.asarray(slots)), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_next_above(rng, dtype):
    shares = np.concatenate([rng.random(10_000), 2.0 ** -np.arange(20), [0.01, 0.05, 0.0]])
    x = np.concatenate([shares, -shares]).astype(dtype)
    x = x[x != 0]
    np.testing.assert_array_equal(next_above(x), np.nextafter(x, dtype(np.inf)))
    assert next_above(x).dtype == dtype
    assert next_above(dtype(0)) == 0


def test_kernels_loops_and_bytes_are_counted():
    """10 floats go in and out, three times more in a loop, to a core; and 5 doubles are written."""
    text = """HloModule m

%body (p: f32[10]) -> f32[10] {
  %p = f32[10]{0} parameter(0)
  ROOT %x = f32[10]{0:T(128)S(1)} fusion(%p), kind=kLoop, calls=%f
}

ENTRY %main (a: f32[10]) -> (f32[10], f64[5]) {
  %a = f32[10]{0} parameter(0)
  %b = f32[10]{0} fusion(%a), kind=kLoop, calls=%f
  %w = f32[10]{0} while(%b), condition=%c, body=%body, backend_config={"known_trip_count":{"n":"3"}}
  %d = f64[5]{0} custom-call(), custom_call_target="x"
  ROOT %t = (f32[10]{0}, f64[5]{0}) tuple(%w, %d)
}
"""
    found = counted(text)
    assert (found.kernels, found.loops) == (5, 1)
    assert (found.moved, found.wide, found.near) == (80 + 3 * 80 + 40, 40, 3 * 40)
    assert found.windows == 0
    for size, windows in (("1x16", 0), ("100000x1", 1)):
        line = f"  %s = f32[9] reduce-window(%a), window={{size={size} pad=1_0}}, to_apply=%f\n"
        assert counted(text + line).windows == windows


@pytest.mark.slow
def test_the_table_of_a_card_has_every_row():
    """At a thousandth of the sizes."""
    command = [sys.executable, "-m", "benchmarks.device", "--part", "1000", "--no-tests"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [line[0].removeprefix("| ") for line in lines[2:]] == [x.name for x in rows(1000)]
    for line in lines[2:]:
        assert re.fullmatch(r"[\d.,]+ \([\d.,]+ to [\d.,]+\)", line[1]), line
