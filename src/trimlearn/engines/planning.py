"""What a fit on a cluster will cost, before it is made: iterations, bytes and seconds, by arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp
from statistics import NormalDist
from typing import final

from trimlearn._utils.validation import check_count, check_positive, is_number
from trimlearn.smart.draws import drawn

# Measured by `python -m benchmarks.scale_dask` on two cores at 2.5 GHz; every one can be given to `plan`.
ROUND_TRIP = 0.01  # seconds of one empty task on every worker and back: 3 to 10 ms there, 20 ms on a busy machine
ROW = 2e-7  # seconds a drawn row takes whatever it holds: to find it among the draws and to fetch it
NUMBER = 4e-10  # seconds more for each of its p·K products, both ways
READ = 5e-8  # seconds a row takes in a whole pass, in order
DRAW = 1e-8  # seconds for each row number drawn: every worker draws all of them, and keeps its own
SPREAD = 0.15  # standard deviation of the logarithm of a task's time: the slowest of all workers is waited for
NETWORK = 1e9  # bytes a second between two machines: 10 Gbit/s, less what protocols take
STEPS = 20  # round trips that a step must be worth: then waiting is a tenth of the time where they take 20 ms, too
ROUNDS = 9  # of a w-step beside its evaluation: the threshold (6), the weights, and curvature (about 5), less what is 1
SHARE = 0.5  # of the rows: a batch that is larger costs as much as all of them
PASSES = 30.0  # over the data: what fits of ten million rows have taken, continuation included


def batch_size(n: int, p: int, K: int, workers: int, *, round_trip: float = ROUND_TRIP) -> int:
    """The rows b of a batch, such that a step takes the workers twenty round trips, and ten where those are slow.

    It is ⌈n^(2/3)⌉, the corollaries' b, where that is enough; never more than half of the rows. A function of its
    arguments alone, so that every run with the same seed takes the same steps.

    >>> batch_size(10**9, 1000, 1, workers=100), batch_size(1000, 5, 1, workers=2)
    (12500000, 500)
    """
    least: int = ceil(round(n ** (2 / 3), 9))
    worth = ceil(STEPS * round_trip / ((ROW + NUMBER * p * K) / workers + DRAW))
    return max(1, min(max(least, worth), int(SHARE * n)))


@final
@dataclass(frozen=True)
class Plan:
    """What a fit is predicted to take; `plan` makes it.

    Parameters
    ----------
    n, p, K, workers : int
        Rows, features, predictions per row, and workers.
    b : int
        Rows in a batch.
    passes : float
        Over the data.
    iterations : int
        x-steps and w-steps.
    rounds : int
        Times that all workers are asked.
    sent : int
        Bytes that pass the client's network, both ways.
    computing, waiting, sending : float
        Seconds of the workers' arithmetic, of round trips, and of bytes on their way.
    memory : int
        Bytes that each worker holds, the rows included.

    Examples
    --------
    >>> from trimlearn.engines import plan
    >>> found = plan(10**6, 20, workers=4)
    >>> found.b, found.iterations
    (500000, 44)
    """

    n: int
    p: int
    K: int
    workers: int
    b: int
    passes: float
    iterations: int
    rounds: int
    sent: int
    computing: float
    waiting: float
    sending: float
    memory: int

    @property
    def seconds(self) -> float:
        """Of the whole fit."""
        return self.computing + self.waiting + self.sending

    def __str__(self) -> str:
        return (
            f"{self.n:,} rows × {self.p:,} features × {self.K} predictions on {self.workers} workers: batches of "
            f"{self.b:,} rows, {self.passes:g} passes in {self.iterations:,} iterations and {self.rounds:,} rounds; "
            f"{self.sent / 1e9:.3g} GB over the client's network; {self.seconds:.3g} s: {self.computing:.3g} "
            f"computing, {self.waiting:.3g} waiting, {self.sending:.3g} sending; {self.memory / 1e9:.3g} GB a worker."
        )


def plan(
    n: int,
    p: int,
    K: int = 1,
    workers: int = 1,
    *,
    b: int | None = None,
    passes: float = PASSES,
    round_trip: float = ROUND_TRIP,
    network: float = NETWORK,
    speed: float = 1.0,
    spread: float = SPREAD,
    itemsize: int = 4,
) -> Plan:
    """What a fit on a cluster is predicted to take: iterations, bytes over the network, seconds.

    Parameters
    ----------
    n, p, K : int
        Rows, features, and predictions per row (classes of a multinomial model, else 1).
    workers : int
        How many workers there are.
    b : int, optional
        Rows in a batch; None: as `trimlearn.solve` chooses it on a cluster.
    passes : float
        Passes over the data.
    round_trip : float
        Seconds of one empty task on every worker and back.
    network : float
        Bytes a second between two machines.
    speed : float
        How much faster than the machine the constants were measured on each worker is: its number of cores, say.
    spread : float
        By how much tasks differ in time: the standard deviation of its logarithm. Every step ends with the slowest.
    itemsize : int
        Bytes of a number: 4 for float32.

    Returns
    -------
    Plan
        The prediction; print it for one sentence.

    Examples
    --------
    >>> from trimlearn.engines import plan
    >>> found = plan(10**9, 1000, workers=100)
    >>> found.rounds < 10_000, found.memory > 4 * 10**10
    (True, True)
    """
    n, p, K, workers = check_count(n, "n"), check_count(p, "p"), check_count(K, "K"), check_count(workers, "workers")
    for name, value in (("passes", passes), ("round_trip", round_trip), ("network", network), ("speed", speed)):
        check_positive(value, name)
    if not is_number(spread) or not spread >= 0:
        raise ValueError(f"spread must be a number >= 0, got {spread!r}.")
    b = batch_size(n, p, K, workers, round_trip=round_trip) if b is None else check_count(b, "b")
    q = min(float(drawn(n, b)), 0.5)
    iterations = passes * n / (q * n + (1 - q) * b)
    w_steps, x_steps = q * iterations, (1 - q) * iterations
    row, read = ROW + NUMBER * p * K, READ + NUMBER * p * K
    computing = x_steps * (b / workers * row + b * DRAW) + w_steps * 2 * n / workers * read
    computing *= exp(spread * NormalDist().inv_cdf(workers / (workers + 1)))  # the slowest of so many, as a rule
    rounds = x_steps + w_steps * (1 + ROUNDS)
    size = 8 * p * K  # of x and of its gradient, in float64
    depth = 1 if workers <= 8 else 2  # levels of a tree of sums with eight branches, up to 64; nearly so up to 512
    sent = rounds * (workers * size + min(workers, 8) * size)
    sending = rounds * (workers + 8 * depth) * size / network
    memory = n // workers * (p + K + 4) * itemsize
    return Plan(
        n=n,
        p=p,
        K=K,
        workers=workers,
        b=b,
        passes=passes,
        iterations=ceil(iterations),
        rounds=ceil(rounds),
        sent=ceil(sent),
        computing=computing / speed,
        waiting=rounds * round_trip,
        sending=sending,
        memory=int(memory),
    )
