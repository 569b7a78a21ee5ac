"""A driver to be killed: a fit to rows on a cluster that stops, and says so, once its checkpoint was written often."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import trimlearn.estimators.streamed
from trimlearn import Checkpoint, TrimmedLinearRegression
from trimlearn.checkpoint.fit import FitCheckpoint

__all__ = ["MODELS", "rows"]

MODELS: dict[str, Any] = {
    "linear": TrimmedLinearRegression(0.1, efficiency="reweight", random_state=0),
    "lasso": TrimmedLinearRegression(0.1, penalty="l1", alpha=0.01, random_state=0),
}


def rows(name: str, n: int = 900) -> tuple[np.ndarray, np.ndarray]:
    """Rows for one of the models, some of which are wrong."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3))
    z, bad = X @ [1.0, -0.5, 0.25], rng.random(n) < 0.1
    if name in MODELS:
        return X, z + 0.1 * rng.normal(size=n) + 5 * bad
    if name == "poisson":
        return X, rng.poisson(np.exp(1 + z / 2)) + 60.0 * bad
    return X, ((12 * z + rng.logistic(size=n) > 0) ^ bad).astype(int)


def main(address: str, file: str, name: str, writes: str) -> None:
    import dask.array as da
    from distributed import Client

    trimlearn.estimators.streamed.WHOLE, trimlearn.estimators.streamed.SAMPLED = 0, 300
    left, real = [int(writes)], FitCheckpoint.write

    def write(self: FitCheckpoint) -> None:
        real(self)
        left[0] -= 1
        if left[0] == 0:
            print("ready", flush=True)
            time.sleep(600)

    FitCheckpoint.write = write  # type: ignore[method-assign]
    X, y = rows(name)
    with Client(address):
        MODELS[name].fit(da.from_array(X, chunks=200), da.from_array(y, chunks=200), checkpoint=Checkpoint(file, 0.0))
    print("ended after", int(writes) - left[0], flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
