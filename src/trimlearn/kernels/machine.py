# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, call-arg, var-annotated, import-untyped"
"""What numba has no word for: a row asked for ahead of its use, and threads that wait for one another."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable
from numba.np.arrayobj import make_array

LEVEL_2 = 2  # of LLVM's localities: into the level-2 cache; a tile of rows would push W out of the first
LINE = 8  # int64 in a cache line of 64 bytes: what threads count in lies that far apart
ROUND, HERE = 0, LINE  # where a meeting counts
PATIENCE = 2000  # looks at the counter before a thread lets others run: some 10 µs, what waking a thread costs

_byte, _int32, _int64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_yield = types.ExternalFunction("sched_yield", types.intc())


def _pointer(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    made = make_array(kind)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, kind, made, at, wraparound=False)


@intrinsic
def prefetch(typingctx, a, i):
    """Ask for the cache line that holds a[i], i an index or a tuple of them."""
    if not isinstance(a, types.Array):
        return None

    def codegen(context, builder, signature, arguments):
        at = cgutils.unpack_tuple(builder, arguments[1]) if isinstance(i, types.BaseTuple) else [arguments[1]]
        address = builder.bitcast(_pointer(context, builder, a, arguments[0], at), _byte.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [address.type, _int32, _int32, _int32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [address, _int32(0), _int32(LEVEL_2), _int32(1)])
        return context.get_dummy_value()

    return types.void(a, i), codegen


@intrinsic
def atomic_add(typingctx, a, i, amount):
    """a[i] += amount, seen by all threads at once; returns what a[i], an int64, was."""
    if not isinstance(a, types.Array):
        return None

    def codegen(context, builder, signature, arguments):
        address = _pointer(context, builder, a, arguments[0], [arguments[1]])
        return builder.atomic_rmw("add", address, arguments[2], "seq_cst")

    return types.int64(a, types.intp, types.int64), codegen


@intrinsic
def atomic_get(typingctx, a, i):
    """a[i], an int64, as it is now for all threads."""
    if not isinstance(a, types.Array):
        return None

    def codegen(context, builder, signature, arguments):
        address = _pointer(context, builder, a, arguments[0], [arguments[1]])
        return builder.load_atomic(address, "seq_cst", 8)

    return types.int64(a, types.intp), codegen


@register_jitable
def take(claims, i):
    """Whether no thread has taken i before; now this one has. ``claims``: an int64 for each, a cache line apart.

    Who only looks leaves the line with all who look; who counts takes it away from them.
    """
    at = i * LINE
    return atomic_get(claims, at) == 0 and atomic_add(claims, at, 1) == 0


@register_jitable
def barrier(meeting, threads):
    """Wait until all threads are here. ``meeting``: 16 int64, all 0 at first."""
    if threads == 1:
        return
    round_ = atomic_get(meeting, ROUND)
    if atomic_add(meeting, HERE, 1) == threads - 1:
        atomic_add(meeting, HERE, -threads)
        atomic_add(meeting, ROUND, 1)
        return
    looks = 0
    while atomic_get(meeting, ROUND) == round_:
        looks += 1
        if looks > PATIENCE:
            _yield()
