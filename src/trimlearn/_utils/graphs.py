"""Device work that is done again and again, captured as a CUDA graph: all of it costs the launch of one kernel."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, Generic, TypeVar, final
from weakref import ref

import torch

from trimlearn._utils.device_memory import explained

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
