"""Device work that is done again and again, captured as a CUDA graph: all of it costs the launch of one kernel.

A device that is full, explained: how much was needed, for what, and what to do.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, final
from weakref import ref

import torch

# What helps where a device is full, for the errors that say so: each of these takes less memory there, or none.
INSTEAD = "store V as bfloat16 (CudaEngine(problem, storage='bfloat16')), take fewer rows, or use engine='local'"


@contextmanager
def explained(size: int, what: str) -> Iterator[None]:
    """Out of memory inside: an error that says how much was needed for ``what``, and what to do."""
    import torch

    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        free = torch.cuda.mem_get_info()[0]
        needed = f"needs {_gigabytes(size)}, and {_gigabytes(free)} of the device's memory is free" if size else (
            f"does not fit into the {_gigabytes(free)} of the device's memory that is free"
        )  # fmt: skip
        raise MemoryError(f"{what[0].upper()}{what[1:]}, {needed}: {INSTEAD}.") from error


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


Owner = TypeVar("Owner")


@final
class Replay(Generic[Owner]):
    """work(owner), which reads and writes buffers that stay where they are: called on a device without graphs, else
    captured at the second call and replayed. What it returns lies in buffers too, overwritten by the next call.

    The owner holds this and is not held by it: the memory of a run is free as soon as the run is over.
    """

    def __init__(self, work: Callable[[Owner], Any], owner: Owner, device: torch.device) -> None:
        self._plain, self._owner, self._device = work, ref(owner), device
        self._calls = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._found: Any = None

    def __call__(self) -> Any:
        if self._device.type != "cuda":
            return self._work()
        if self._graph is not None:
            self._graph.replay()
            return self._found
        with explained(0, "what a pass over the rows holds at a time"):
            return self._first()

    def _work(self) -> Any:
        owner = self._owner()
        assert owner is not None, "it is the owner that asks"
        return self._plain(owner)

    def _first(self) -> Any:
        self._calls += 1
        if self._calls == 1:  # what is made at the first call, workspaces say, must not be made inside a capture
            return self._work()
        self._graph = self._capture()
        self._graph.replay()
        return self._found

    def _capture(self) -> torch.cuda.CUDAGraph:
        """As `torch.cuda.graph` does it, without emptying its cache of memory, which takes longer than all the rest.
        Nothing may be freed on the way: that would break off the capture."""
        graph, here = torch.cuda.CUDAGraph(), torch.cuda.current_stream(self._device)
        aside: Any = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        aside.wait_stream(here)
        collecting = gc.isenabled()
        gc.disable()
        try:
            with torch.cuda.stream(aside):
                graph.capture_begin(capture_error_mode="thread_local")
                try:
                    self._found = self._work()
                finally:
                    graph.capture_end()
        finally:
            if collecting:
                gc.enable()
        here.wait_stream(aside)
        return graph
