"""A driver to be killed: a fit to rows on a cluster that stops, and says so, once its checkpoint was written often.

An earlier state of the file, which it would have left if it had been killed then, is kept under another name.
"""

from __future__ import annotations

import shutil
import sys
import time

import numpy as np

import trimlearn.estimators.streamed
from trimlearn import Checkpoint, TrimmedLinearRegression
from trimlearn.checkpoint.fit import FitCheckpoint

__all__ = ["MODEL", "rows"]

MODEL = TrimmedLinearRegression(0.1, penalty="l1", alpha=0.01, random_state=0)


def rows(kind: str, n: int = 900) -> tuple[np.ndarray, np.ndarray]:
    """Rows for a linear model, for counts ("poisson") or for labels ("logistic"), some of which are wrong."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3))
    z, bad = X @ [1.0, -0.5, 0.25], rng.random(n) < 0.1
    if kind == "linear":
        return X, z + 0.1 * rng.normal(size=n) + 5 * bad
    if kind == "poisson":
        return X, rng.poisson(np.exp(1 + z / 2)) + 60.0 * bad
    return X, ((12 * z + rng.logistic(size=n) > 0) ^ bad).astype(int)


def main(address: str, early: str, before: str, late: str, writes: str) -> None:
    import dask.array as da
    from distributed import Client

    trimlearn.estimators.streamed.WHOLE, trimlearn.estimators.streamed.SAMPLED = 0, 300
    made, real = [0], FitCheckpoint.write

    def write(self: FitCheckpoint) -> None:
        real(self)
        made[0] += 1
        if made[0] == int(before):
            shutil.copy(late, early)
        if made[0] == int(writes):
            print("ready", flush=True)
            time.sleep(600)

    FitCheckpoint.write = write  # type: ignore[method-assign]
    X, y = rows("linear")
    with Client(address):
        MODEL.fit(da.from_array(X, chunks=200), da.from_array(y, chunks=200), checkpoint=Checkpoint(late, 0.0))
    print("ended after", made[0], flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
