"""The fused engine: what a step costs, and how far that is from what the arithmetic must cost."""

import statistics
import time

import numpy as np
from numba import njit

from benchmarks.steps import SHAPES
from seqcls.config import RunConfig
from seqcls.engines.compiled.parameters import Update
from seqcls.engines.fused.engine import epoch_tiles, parameters_of, shape_of
from seqcls.engines.fused.kernel import train_epoch
from seqcls.engines.lanes.vector import LANES, fma, spread, total
from seqcls.engines.member import draw_initial
from seqcls.interpretability.verdicts import verdicts
from seqcls.problem import resolve
from seqcls.training import train_group

REPEATS = 15


def main() -> None:
    """Prints the cost of a step, of a verdict and of one seed more."""
    peak = _peak_flops()
    print(
        f"the fused engine; this core does {peak / 1e9:.0f} GFLOP/s of multiply-adds in registers"
    )
    print("  hidden heads   us/step   FLOP/step   share of the core's arithmetic   verdict ms")
    for hidden_size, heads in SHAPES:
        config = RunConfig(
            hidden_size=hidden_size,
            num_attention_heads=heads,
            layer_norm_eps=0.0,
            no_attend_cls=True,
        )
        seconds = _step_seconds(config)
        flops = step_flops(config)
        verdict = _verdict_seconds(config)
        print(
            f"  {hidden_size:>6} {heads:>5} {seconds * 1e6:>9.1f} {flops:>11,} "
            f"{flops / seconds / peak:>32.0%} {verdict * 1e3:>12.0f}",
            flush=True,
        )
    print(f"  one seed more of the default configuration: {_marginal_seconds() * 1e3:.1f} ms")


def step_flops(config: RunConfig) -> int:
    """Additions, multiplications, divisions and roots of one step, with exp as 20 and erf as 40.

    Counted from the formulas in `seqcls.engines.fused.kernel`: for every string of the batch twice
    the products forward and four times backward, and fifteen for AdamW on every parameter.
    """
    types = config.num_letters + (not config.no_attend_cls)
    hidden, heads, inner = config.hidden_size, config.num_attention_heads, config.feed_forward_size
    mixed = heads * config.attention_head_size
    products = mixed * types + hidden * mixed + inner * hidden + hidden + inner
    elementary = 20 * heads * types + 40 * inner + 60
    weights = 6 * heads * types
    per_string = 6 * products + elementary + weights
    shared = 6 * (3 * mixed * hidden * types + 2 * inner * hidden)
    parameters = hidden * (config.num_letters + 1 + 4 * mixed + 2 * inner + 1)
    return config.train_batch_size * per_string + shared + 15 * parameters


def _step_seconds(config: RunConfig) -> float:
    (initial,) = draw_initial([(resolve(config), 0)])
    flat = parameters_of(resolve(config).network).pack(initial)
    moments = np.zeros((2, len(flat)), flat.dtype)
    tiles = epoch_tiles(resolve(config).train, 0, config.precision)
    shape = shape_of(resolve(config).network)
    update = Update(np.full(len(tiles.ends), 1e-3), config.weight_decay, config.gradient_clip)
    seconds = []
    for epoch in range(REPEATS + 1):
        started = time.perf_counter()
        steps = epoch * len(tiles.ends)
        train_epoch(flat, moments, steps, update, shape, *tiles)
        seconds.append((time.perf_counter() - started) / len(tiles.ends))
    return statistics.median(seconds[1:])


def _verdict_seconds(config: RunConfig) -> float:
    weights = draw_initial([(resolve(config), 0)])
    seconds = []
    for _ in range(4):
        started = time.perf_counter()
        verdicts(resolve(config), weights)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:])


def _marginal_seconds() -> float:
    seconds = []
    for members in (10, 60):
        group = [(resolve(RunConfig()), seed) for seed in range(members)]
        started = time.perf_counter()
        train_group(group, engine="fused")
        seconds.append(time.perf_counter() - started)
    # The difference leaves out what beginning costs.
    return (seconds[1] - seconds[0]) / 50


@njit
def _multiply_add(rounds):  # type: ignore[no-untyped-def]
    factor, more = spread(np.float32(0.5)), spread(np.float32(1))
    # Eight sums that do not depend on each other, so that none waits for the one before.
    a = b = c = d = e = f = g = h = more
    for _ in range(rounds):
        a, b, c, d = (
            fma(a, factor, more), fma(b, factor, more), fma(c, factor, more), fma(d, factor, more)
        )  # fmt: skip
        e, f, g, h = (
            fma(e, factor, more), fma(f, factor, more), fma(g, factor, more), fma(h, factor, more)
        )  # fmt: skip
    return total(a + b + c + d + e + f + g + h)


def _peak_flops() -> float:
    """Peak of one core: multiply-adds of single-precision numbers in registers, per second."""
    rounds, sums = 1_000_000, 8
    # Compiled before it is timed.
    _multiply_add(1)
    best = 0.0
    for _ in range(5):
        started = time.perf_counter()
        _multiply_add(rounds)
        # A multiply-add is two operations.
        best = max(best, 2 * sums * LANES * rounds / (time.perf_counter() - started))
    return best
