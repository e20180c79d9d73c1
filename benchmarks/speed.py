"""Speed of the streaming core against what a user would pick instead: interleaved runs, medians, ratios.

Usage: python benchmarks/speed.py [--quick] [--write]     (needs pip install -c constraints.txt -e '.[benchmark]')

Every contestant runs once a round, in turn, so that a machine that slows down slows all of them; a ratio is the
median of the ratios of the rounds. A plain loop does this; pytest-benchmark times one contestant after the other.
All results must agree before anything is timed. ``--write`` stores the day's results in book/records/speed.json.
"""

import os

os.environ.pop("OPENBLAS_CORETYPE", None)  # a machine's setting may hide its best kernels
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import json
import platform
import sys
import time
import tracemalloc
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from peers import Problem, covariance_peers, estimate_peers

from nwmha import _stream, head_moments

ESTIMATES = [(10_000, 1000, 8, 8), (1000, 10_000, 8, 8), (100_000, 100, 8, 64), (100_000, 100, 1, 8)]
COVARIANCES = [(10_000, 1000, 8, 8), (1000, 10_000, 8, 8), (10_000, 100, 32, 64), (100_000, 100, 8, 8)]
ROUNDS, SLOW = 7, 5  # rounds; contestants that need more seconds than SLOW a run get 5 rounds
OURS = "nwmha, numpy"


def check(contestants):
    """All contestants give the same numbers: nothing is compared that does not do the same work."""
    expected = None
    for name, (run, tolerance) in contestants.items():
        found = np.asarray(run())
        expected = found if expected is None else expected
        error = np.abs(found - expected).max()
        if not error <= tolerance:
            raise AssertionError(f"{name} differs from {OURS} by {error:.2g}")


def measure(contestants, rounds):
    """Seconds per round and contestant, interleaved."""
    seconds = {name: [] for name in contestants}
    for k in range(rounds):
        for name, (run, _) in contestants.items():
            if k >= 5 and seconds[name][0] > SLOW:
                continue
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    ours = seconds[OURS]
    return {
        name: {"seconds": round(float(np.median(times)), 4),
               "ratio": round(float(np.median([t / o for t, o in zip(times, ours)])), 2)}
        for name, times in seconds.items()
    }  # fmt: skip


def machine_limit(size, weights_only):
    """Lower bound in seconds: the flops of the products at this machine's best rate, and one exp per weight."""
    n, m, H, d_k = size
    a = np.random.default_rng(0).normal(size=(1024, 1024))
    logits = np.random.default_rng(0).normal(size=(64, 8, 256))
    out = np.empty_like(logits)
    gemm = 2 * 1024**3 / _best(lambda: a @ a)
    exp = logits.size / _best(lambda: np.exp(logits, out=out))
    flops = 2 * n * m * H * (d_k + (2 if weights_only else H + 2)) + 2 * n * H * d_k * d_k
    return flops / gemm + n * m * H / exp, gemm, exp


def _best(run, repeats=15):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_memory(n, size=(1000, 8, 8)):
    """Peak of traced memory, in MB over the inputs, of all cross moments with the design from a generator."""
    m, H, d_k = size
    problem = Problem(256, m, H, d_k)
    rng = np.random.default_rng(1)
    blocks = (rng.normal(size=(min(4096, n - start), d_k)) for start in range(0, n, 4096))
    tracemalloc.start()
    head_moments(problem.W, problem.x, blocks, target=lambda x: x[:, 0], sigma=1.0, query_projections=problem.V)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return round(peak / 1e6, 2)


def run_task(name, sizes, peers, rounds):
    found = []
    for size in sizes:
        contestants = peers(Problem(*size), OURS)
        check(contestants)
        limit, gemm, exp = machine_limit(size, weights_only=name == "estimates")
        results = measure(contestants, rounds)
        results["lower bound"] = {"seconds": round(limit, 4), "ratio": round(limit / results[OURS]["seconds"], 2)}
        found.append(
            {"size": list(size), "gflops": round(gemm / 1e9, 1), "gexp": round(exp / 1e9, 2), "results": results}
        )
        print(f"\n{name}: n, m, H, d_k = {size}")
        for contestant, entry in results.items():
            print(f"  {contestant:<34}{entry['seconds']:>9.4f} s{entry['ratio']:>9.2f}")
    return found


def blas():
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return "unknown"
    return ", ".join(sorted({str(entry.get("architecture")) for entry in threadpool_info() if "architecture" in entry}))


def main(arguments):
    torch.set_num_threads(1)
    quick = "--quick" in arguments
    report = {
        "date": date.today().isoformat(), "machine": f"{platform.machine()}, one thread, BLAS kernels {blas()}",
        "versions": {name: version(name) for name in ("numpy", "torch", "scikit-learn", "scikit-fda", "statsmodels")},
        "estimates": run_task("estimates", ESTIMATES[: 1 if quick else None], estimate_peers, 5 if quick else ROUNDS),
        "covariances": run_task("covariances", COVARIANCES[: 1 if quick else None], covariance_peers,
                                5 if quick else ROUNDS),
        "memory": {str(n): peak_memory(n) for n in (10_000, 100_000 if quick else 1_000_000)},
        "blocks": {"keys": _stream.KEYS, "queries_heads": _stream.QUERIES},
    }  # fmt: skip
    print("\npeak memory over the inputs, MB:", report["memory"])
    if "--write" in arguments:
        target = Path(__file__).parents[1] / "book" / "records" / "speed.json"
        target.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(f"written: {target}")


if __name__ == "__main__":
    main(sys.argv[1:])
