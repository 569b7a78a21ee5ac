"""The examples on a GPU: x and what is of its size in the host's memory, everything with one entry per row there."""

from trimlearn.engines.cuda.engine import CudaEngine
from trimlearn.engines.cuda.place import hosted, lies_on_cuda

__all__ = ["CudaEngine", "hosted", "lies_on_cuda"]
