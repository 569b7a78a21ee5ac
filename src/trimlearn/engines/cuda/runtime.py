"""Kernels in CUDA C, compiled when first asked for by NVRTC, which torch brings along, and launched by the driver."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, final

import torch

VERSIONS = (13, 12)  # of CUDA that torch 2.x is built with: the library's name ends in one of them
SHARED_MEMORY = 8  # the number of CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES in cuda.h


@cache
def kernel_of(file: str, name: str, device: int, shared: int, *defined: tuple[str, int]) -> CudaKernel | None:
    """The kernel of this name in a file of `trimlearn.engines.cuda.kernels`, compiled with these macros for a device;
    None where that fails: whoever asks has another way."""
    source = files("trimlearn.engines.cuda.kernels").joinpath(file).read_text(encoding="utf-8")
    major, minor = torch.cuda.get_device_capability(device)
    options = [f"--gpu-architecture=sm_{major}{minor}a", *(f"-D{macro}={value}" for macro, value in defined)]
    try:
        with torch.cuda.device(device):
            torch.cuda.current_stream().synchronize()  # torch makes the context that modules are loaded into
            return CudaKernel(_compiled(source, options), name, shared)
    except RuntimeError:
        return None


def has_compiler() -> bool:
    """Whether kernels can be compiled and launched here."""
    return _compiler() is not None and _driver() is not None


@final
class CudaKernel:
    """A compiled kernel with so many bytes of shared memory a program."""

    def __init__(self, compiled: bytes, name: str, shared: int) -> None:
        driver, self._shared = _driver(), shared
        self._module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        _call(driver.cuModuleLoadData, ctypes.byref(self._module), compiled)
        _call(driver.cuModuleGetFunction, ctypes.byref(self._function), self._module, name.encode())
        _call(driver.cuFuncSetAttribute, self._function, SHARED_MEMORY, shared)

    def __call__(self, programs: int, threads: int, *arguments: Any, together: bool = False) -> None:
        """Launch it on torch's stream. It takes one structure: tensors are pointers in it, numbers 32-bit integers.

        With ``together`` no program begins before all of them can run: they may wait for one another.
        """
        given = _structure(arguments)
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(given))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        shape = (programs, 1, 1, threads, 1, 1, self._shared, stream, pointers)
        if together:
            _call(_driver().cuLaunchCooperativeKernel, self._function, *shape)
        else:
            _call(_driver().cuLaunchKernel, self._function, *shape, None)


@cache
def _compiler() -> Any:
    """The library NVRTC, loaded by torch, or in one of its packages; None where there is none."""
    packages = [Path(base) / "nvidia" for base in sys.path]
    found = [str(file) for base in packages for file in sorted(base.glob("*/lib/libnvrtc.so.*[0-9]"))]
    return _loaded([*(f"libnvrtc.so.{version}" for version in VERSIONS), *found])


@cache
def _driver() -> Any:
    return _loaded(["libcuda.so.1"])


def _loaded(names: list[str]) -> Any:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _compiled(source: str, options: list[str]) -> bytes:
    library, program, size = _compiler(), ctypes.c_void_p(), ctypes.c_size_t()
    texts = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    _call(library.nvrtcCreateProgram, ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    try:
        _call(library.nvrtcCompileProgram, program, len(options), texts)
        _call(library.nvrtcGetCUBINSize, program, ctypes.byref(size))
        found = ctypes.create_string_buffer(size.value)
        _call(library.nvrtcGetCUBIN, program, found)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
    return found.raw


def _call(function: Callable[..., int], *arguments: Any) -> None:
    code = function(*arguments)
    if code:
        raise RuntimeError(f"{function.__name__} failed with error {code}.")


def _structure(arguments: tuple[Any, ...]) -> ctypes.Structure:
    """The arguments one after the other, as C lays them out."""
    pointers = tuple(isinstance(a, torch.Tensor) for a in arguments)
    made: ctypes.Structure = _layout(pointers)(
        *(a.data_ptr() if pointer else a for a, pointer in zip(arguments, pointers, strict=True))
    )
    return made


@cache
def _layout(pointers: tuple[bool, ...]) -> Any:
    """The structure of so many members, pointers or integers."""
    members = [(f"_{i}", ctypes.c_void_p if pointer else ctypes.c_int) for i, pointer in enumerate(pointers)]
    return type("Arguments", (ctypes.Structure,), {"_fields_": members})
