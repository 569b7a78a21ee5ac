# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, call-arg, import-untyped"
"""Products with one sparse row and a matrix of few columns: the K numbers of an entry are one vector.

A loop over so few numbers is not unrolled by the compiler, which does not know K, and its sums are put away after every
entry. Here there is a loop over the entries for each width, whose sums stay in registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

WIDEST = 16  # numbers at a time: twice as many doubles are half of the registers of AVX2
FUSED = ("contract",)  # a product and a sum may be rounded once

_int32 = ir.IntType(32)


@intrinsic
def add_product(typingctx, data, indices, begin, end, W, k, width, z, q):
    """z[q, k : k + width] += Σ data[e] W[indices[e], k : k + width] over the entries e of begin … end − 1."""
    if not _are_arrays(data, indices, W, z):
        return None

    def codegen(context, builder, signature, arguments):
        row = _Row(context, builder, (data, indices), arguments[:4], (W, arguments[4]), arguments[5])
        sums = row.matrix(z, arguments[7])

        def loop(width: int) -> None:
            place = row.vector(sums, arguments[8], width)
            total = cgutils.alloca_once(builder, place.type.pointee)
            builder.store(row.load(place), total)

            def entry(v: Any, there: Any) -> None:
                builder.store(row.plus(builder.load(total), v, row.load(there)), total)

            row.each_entry(width, entry)
            row.store(builder.load(total), place)

        _by_width(builder, arguments[6], loop)
        return context.get_dummy_value()

    places = (types.intp, types.intp)
    return types.void(data, indices, *places, W, *places, z, types.intp), codegen


@intrinsic
def add_outer(typingctx, data, indices, begin, end, r, q, k, width, G):
    """G[indices[e], k : k + width] += data[e] r[q, k : k + width] for the entries e of begin … end − 1."""
    if not _are_arrays(data, indices, r, G):
        return None

    def codegen(context, builder, signature, arguments):
        row = _Row(context, builder, (data, indices), arguments[:4], (G, arguments[8]), arguments[6])
        parts = row.matrix(r, arguments[4])

        def loop(width: int) -> None:
            part = row.load(row.vector(parts, arguments[5], width))

            def entry(v: Any, there: Any) -> None:
                row.store(row.plus(row.load(there), v, part), there)

            row.each_entry(width, entry)

        _by_width(builder, arguments[7], loop)
        return context.get_dummy_value()

    places = (types.intp, types.intp)
    return types.void(data, indices, *places, r, types.intp, *places, G), codegen


def _are_arrays(*kinds: Any) -> bool:
    return all(isinstance(kind, types.Array) and kind.layout == "C" for kind in kinds)


def _by_width(builder: Any, width: Any, loop: Callable[[int], None]) -> None:
    """What ``loop`` writes for the width that there is; nothing for one that is not in 1 … WIDEST."""
    after = builder.append_basic_block("after")
    switch = builder.switch(width, after)
    for known in range(1, WIDEST + 1):
        block = builder.append_basic_block(f"width_{known}")
        switch.add_case(ir.Constant(width.type, known), block)
        builder.position_at_end(block)
        loop(known)
        builder.branch(after)
    builder.position_at_end(after)


class _Row:
    """Code for the entries of a row, and for vectors in the rows of a matrix, which all begin at column k."""

    def __init__(self, context: Any, builder: Any, kinds: Any, values: Any, matrix: Any, k: Any) -> None:
        self._context, self._builder, self._k, self._kinds = context, builder, k, kinds
        self._data, self._indices = (
            make_array(kind)(context, builder, value).data for kind, value in zip(kinds, values[:2], strict=True)
        )
        self._begin, self._end = values[2:]
        self._number = matrix[0].dtype
        self._bytes = context.get_abi_sizeof(context.get_data_type(self._number))
        self._rows = self.matrix(*matrix)

    def matrix(self, kind: Any, value: Any) -> tuple[Any, Any]:
        """Where a matrix begins, and its columns."""
        made = make_array(kind)(self._context, self._builder, value)
        return made.data, cgutils.unpack_tuple(self._builder, made.shape)[1]

    def vector(self, matrix: tuple[Any, Any], row: Any, width: int) -> Any:
        """Where the numbers k … k + width − 1 of a row of the matrix lie."""
        data, columns = matrix
        at = self._builder.add(self._builder.mul(row, columns), self._k)
        kind = ir.VectorType(self._context.get_data_type(self._number), width)
        return self._builder.bitcast(self._builder.gep(data, [at]), kind.as_pointer())

    def load(self, place: Any) -> Any:
        return self._builder.load(place, align=self._bytes)

    def store(self, value: Any, place: Any) -> None:
        self._builder.store(value, place, align=self._bytes)

    def plus(self, a: Any, v: Any, b: Any) -> Any:
        """a + v·b."""
        return self._builder.fadd(a, self._builder.fmul(v, b, flags=FUSED), flags=FUSED)

    def each_entry(self, width: int, code: Callable[[Any, Any], None]) -> None:
        """A loop over the entries: ``code`` is given the number of each as a vector, and where its column's lie."""
        builder, context, one = self._builder, self._context, ir.Constant(self._begin.type, 1)
        number = context.get_data_type(self._number)
        with cgutils.for_range_slice(builder, self._begin, self._end, one, self._begin.type) as (at, _):
            j = context.cast(builder, builder.load(builder.gep(self._indices, [at])), self._kinds[1].dtype, types.intp)
            given = builder.load(builder.gep(self._data, [at]))
            v = context.cast(builder, given, self._kinds[0].dtype, self._number)
            empty = ir.Constant(ir.VectorType(number, width), ir.Undefined)
            first = builder.insert_element(empty, v, _int32(0))
            everywhere = ir.Constant(ir.VectorType(_int32, width), [_int32(0)] * width)
            code(builder.shuffle_vector(first, empty, everywhere), self.vector(self._rows, j, width))
