"""The linear layer: every kind of data against an explicit design matrix."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from backends import BACKENDS, Backend
from trimlearn._utils.arrays import to_numpy
from trimlearn.losses import Block, Linear, storage

N, P, K = 23, 5, 3

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "intercept": {"intercept": True},
    "center": {"center": np.arange(P) - 1.0},
    "scale": {"scale": np.arange(P) + 0.5},
    "all": {"intercept": True, "center": np.arange(P) - 1.0, "scale": np.arange(P) + 0.5},
}
ROWS: dict[str, Any] = {
    "all": None,
    "slice": slice(4, 19),
    "open": slice(7, None),
    "strided": slice(1, 20, 3),
    "negative": slice(-6, -1),
    "beyond": slice(20, 99),
    "none": slice(9, 9),
    "index": np.array([3, 3, 0, 22, 7, 7, 7]),
    "sorted": np.array([1, 2, 21]),
    "empty": np.array([], dtype=np.int64),
}


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    return Backend(request.param, tmp_path)


def sample(seed: int = 0, n: int = N, p: int = P) -> np.ndarray:
    """A matrix with some zeros in it, exact in float32."""
    rng = np.random.default_rng(seed)
    V = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.7)
    return V.astype(np.float32).astype(np.float64)


def design(V: np.ndarray, options: dict[str, Any]) -> np.ndarray:
    """The matrix whose product with x the layer stands for."""
    A = (V - options.get("center", 0.0)) / options.get("scale", 1.0)
    return np.hstack([A, np.ones((len(V), 1))]) if options.get("intercept") else A


def as_matrix(x: np.ndarray, layer: Linear) -> np.ndarray:
    """x as (p, K)."""
    return x[:, None] if layer.K is None else x.T if layer.transpose else x


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("shape", ["vector", "matrix", "transpose"])
class TestAgainstExplicitDesign:
    def setup_layer(self, backend: Backend, options: dict[str, Any], shape: str) -> tuple[Linear, np.ndarray]:
        V = sample()
        K_ = None if shape == "vector" else K
        return Linear(backend.matrix(V), K=K_, transpose=shape == "transpose", **options), design(V, options)

    def test_predict_and_adjoint(self, backend: Backend, options: dict[str, Any], shape: str) -> None:
        layer, A = self.setup_layer(backend, options, shape)
        rng = np.random.default_rng(1)
        x = rng.standard_normal(layer.x_shape)
        for name, rows in ROWS.items():
            A_rows = A if rows is None else A[rows]
            Z = A_rows @ as_matrix(x, layer)
            r = rng.standard_normal(Z.shape)
            G = A_rows.T @ r
            expected = G[:, 0] if layer.K is None else G.T if layer.transpose else G
            assert expected.shape == layer.x_shape, name
            backend.assert_close(layer.predict(backend.array(x), rows), Z)
            backend.assert_close(layer.adjoint(backend.array(r), rows), expected)

    def test_adjoint_identity(self, backend: Backend, options: dict[str, Any], shape: str) -> None:
        layer, _ = self.setup_layer(backend, options, shape)
        rng = np.random.default_rng(2)
        x, r = backend.array(rng.standard_normal(layer.x_shape)), backend.array(rng.standard_normal((N, layer.K or 1)))
        left = np.vdot(to_numpy(layer.predict(x)), to_numpy(r))
        assert left == pytest.approx(np.vdot(to_numpy(x), to_numpy(layer.adjoint(r))), rel=backend.rtol)

    def test_norms_and_moments(self, backend: Backend, options: dict[str, Any], shape: str) -> None:
        layer, A = self.setup_layer(backend, options, shape)
        backend.assert_close(layer.row_norms2(), (A**2).sum(1))
        for c in (np.ones(N), np.random.default_rng(3).random(N)):
            total, *moments = layer.column_moments(backend.array(c))
            assert total == pytest.approx(c.sum(), rel=backend.rtol)
            for expected, found in zip(((A**power).T @ c for power in (2, 4)), moments, strict=True):
                assert str(found.dtype).removeprefix("torch.") == "float64"  # squares that float32 does not hold
                backend.assert_close(as_matrix(backend.array(to_numpy(found)), layer), expected[:, None])
                assert np.broadcast_shapes(found.shape, layer.x_shape) == layer.x_shape


@given(
    n=st.integers(1, 12),
    p=st.integers(1, 6),
    k=st.one_of(st.none(), st.integers(1, 4)),
    intercept=st.booleans(),
    shifted=st.booleans(),
    sparse=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_adjoint_identity_for_any_shape(
    n: int, p: int, k: int | None, intercept: bool, shifted: bool, sparse: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    V = rng.standard_normal((n, p))
    shift = {"center": rng.standard_normal(p), "scale": rng.random(p) + 0.1} if shifted else {}
    layer = Linear(sp.csr_array(V) if sparse else V, K=k, intercept=intercept, **shift)
    rows = rng.integers(0, n, rng.integers(0, 2 * n))
    x, r = rng.standard_normal(layer.x_shape), rng.standard_normal((len(rows), k or 1))
    block = Block(layer, rows)
    left, right = np.vdot(block.predict(x), r), np.vdot(x, block.adjoint(r))
    assert left == pytest.approx(right, rel=1e-9, abs=1e-9)


class TestBlock:
    def test_is_read_once(self, backend: Backend) -> None:
        layer = Linear(backend.matrix(sample()), K=K)
        fetched = []
        fetch = layer.storage.fetch
        layer.storage.fetch = lambda rows: fetched.append(rows) or fetch(rows)  # type: ignore[method-assign]
        x = backend.array(np.ones(layer.x_shape))
        rows = np.array([1, 5, 5])
        block = Block(layer, rows)
        r = block.predict(x)
        backend.assert_close(block.adjoint(r), sample()[rows].T @ (sample()[rows] @ np.ones((P, K))))
        assert len(fetched) == 1

    def test_gather_reuses_its_buffer(self) -> None:
        layer = Linear(sample())
        first = layer.storage.fetch(np.array([1, 2, 3]))
        assert np.shares_memory(first, layer.storage.fetch(np.array([7, 8])))

    def test_overwritten_rows_raise(self) -> None:
        layer = Linear(sample())
        stale, lasting = Block(layer, np.array([1, 2])), Block(layer, slice(1, 3))
        Block(layer, np.array([3, 4]))
        with pytest.raises(RuntimeError, match="overwritten"):
            stale.predict(np.ones(P))
        np.testing.assert_array_equal(lasting.predict(np.ones(P)), (sample()[1:3] @ np.ones(P))[:, None])

    def test_large_batch_is_cut(self, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(storage, "GATHER_BYTES", 100)
        layer = Linear(backend.matrix(sample()), K=K, intercept=True)
        rows = np.arange(N)[::-1].copy()
        assert len(layer.storage.cut(rows)) > 3
        x, r = np.random.default_rng(0).standard_normal((2, P + 1, K))[0], np.ones((N, K))
        A = design(sample(), {"intercept": True})
        block = Block(layer, rows)
        backend.assert_close(block.predict(backend.array(x)), A[rows] @ x)
        backend.assert_close(block.adjoint(backend.array(r)), A.T @ r)


class TestTypes:
    """Integers and short floats are converted piece by piece, to the same numbers."""

    DTYPES = ("uint8", "int8", "bool", "int16", "float16", "int32", "int64", ">f4", ">f8", "longdouble")
    SINGLE = ("uint8", "int8", "bool", "int16", "float16", ">f4")

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("sparse", [False, True])
    def test_numpy(self, dtype: str, sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        if sparse and dtype in ("float16", ">f4", ">f8"):
            pytest.skip("scipy has no such sparse arrays")
        monkeypatch.setattr(storage, "PIECE_BYTES", 64)
        V = np.random.default_rng(0).integers(0, 4, (N, P)).astype(dtype)
        layer = Linear(sp.csr_array(V) if sparse else V, K=2, center=np.ones(P))
        working = np.dtype("float32" if dtype in self.SINGLE else "float64")
        assert layer.like.dtype == working
        assert len(layer.storage.cut(slice(0, N))) > 3
        A = V.astype(np.float64) - 1
        x = np.arange(2.0 * P).reshape(P, 2).astype(working)
        for rows in (None, slice(2, 20, 2), np.array([5, 5, 1])):
            A_rows = A if rows is None else A[rows]
            Z, G = layer.predict(x, rows), layer.adjoint(np.ones((len(A_rows), 2), working), rows)
            assert Z.dtype == G.dtype == working
            np.testing.assert_array_equal(Z, A_rows @ x)  # small integers: exact
            np.testing.assert_array_equal(G, A_rows.T @ np.ones((len(A_rows), 2)))
        np.testing.assert_array_equal(layer.row_norms2(), (A**2).sum(1).astype(working))

    @pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "bfloat16", "bool"])
    def test_torch(self, dtype: str) -> None:
        torch = pytest.importorskip("torch")
        V = torch.asarray(np.random.default_rng(0).integers(0, 4, (N, P))).to(getattr(torch, dtype))
        layer = Linear(V)
        assert layer.like.dtype == (torch.float64 if dtype == "int64" else torch.float32)
        x = torch.ones(P, dtype=layer.like.dtype)
        assert torch.equal(layer.predict(x, np.array([4, 4])), (V.to(x.dtype) @ x)[[4, 4], None])

    @pytest.mark.parametrize("make", [sp.csc_array, sp.coo_array, sp.csr_matrix, sp.lil_matrix])
    def test_other_sparse_formats(self, make: Any) -> None:
        layer = Linear(make(sample()))
        np.testing.assert_allclose(layer.predict(np.ones(P)), sample().sum(1, keepdims=True), rtol=1e-12)

    def test_sparse_with_repeated_and_unsorted_entries(self) -> None:
        V = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 3, 3])), shape=(2, 2))
        layer = Linear(V, center=np.array([1.0, 0.0]))
        np.testing.assert_array_equal(layer.row_norms2(), [13.0, 1.0])  # (3 - 1)² + (1 + 2)²
        np.testing.assert_array_equal(layer.column_moments(np.ones(2))[1], [5.0, 9.0])
        np.testing.assert_array_equal(V.data, [1.0, 2.0, 3.0])  # the caller's matrix is as it was

    def test_lists_and_frames(self) -> None:
        pd = pytest.importorskip("pandas")
        for V in (sample().tolist(), pd.DataFrame(sample())):
            np.testing.assert_array_equal(Linear(V).predict(np.ones(P)), (sample() @ np.ones(P))[:, None])

    def test_double_x_does_not_widen_single_data(self) -> None:
        layer = Linear(sample().astype(np.float32))
        assert layer.predict(np.ones(P)).dtype == layer.adjoint(np.ones((N, 1))).dtype == np.float32

    def test_norms_are_summed_in_double(self) -> None:
        V = np.full((1, 2**14), 1 + 2**-12, dtype=np.float32)
        center = np.ones(2**14, dtype=np.float32)
        assert Linear(V, center=center).row_norms2()[0] == 2.0**-10


class TestMemory:
    """Nothing as large as V is ever made."""

    @staticmethod
    def peak(work: Any) -> int:
        tracemalloc.start()
        try:
            work()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    def work(self, V: Any) -> int:
        n, p = V.shape

        def run() -> None:
            layer = Linear(V, intercept=True, center=np.ones(p), scale=np.full(p, 2.0))
            x, r = np.ones(layer.x_shape, layer.like.dtype), np.ones((n, 1), layer.like.dtype)
            for rows in (None, slice(0, n), np.arange(0, n, 100)):
                block = Block(layer, rows)
                block.predict(x)
                block.adjoint(r[: block.m])
            layer.row_norms2()
            layer.column_moments(np.ones(n, layer.like.dtype))

        return self.peak(run)

    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("dtype", ["float64", "uint8"])
    def test_dense(self, dtype: str, order: Any) -> None:
        V = np.ones((50_000, 100), dtype=dtype, order=order)  # 40 MB as float64
        assert self.work(V) < 12e6

    def test_memmap(self, tmp_path: Path) -> None:
        V = np.lib.format.open_memmap(tmp_path / "V.npy", mode="w+", dtype=np.float32, shape=(50_000, 100))
        assert self.work(V) < 12e6  # 20 MB

    def test_csr_is_not_centred(self) -> None:
        i = np.arange(40_000)
        V = sp.csr_array((np.ones(40_000), (i // 2, 7 * i % 2_000)), shape=(20_000, 2_000))
        assert self.work(V) < 12e6  # 320 MB if centred

    def test_view_of_the_callers_data(self) -> None:
        V = sample()
        assert np.shares_memory(Linear(V).storage.fetch(slice(3, 9)), V)
        S = sp.csr_matrix(V)
        assert np.shares_memory(Linear(S).storage.fetch(slice(3, 9)).data, S.data)


class TestErrors:
    @pytest.mark.parametrize(
        ("V", "message"),
        [
            (np.ones(3), "V must be 2-D"),
            (np.ones((2, 2, 2)), "V must be 2-D"),
            (np.ones((0, 3)), "V is empty"),
            (np.ones((3, 0)), "V is empty"),
            (sp.csr_array((0, 3)), "V is empty"),
            (np.array([[1.0, np.nan]]), "V holds NaN"),
            (np.array([[1.0, np.inf], [-np.inf, 0.0]]), "V holds NaN or infinity"),
            (np.array([[1, np.nan]], dtype=np.float16), "V holds NaN"),
            (sp.csr_array(np.array([[1.0, np.nan]])), "V holds NaN"),
            (np.array([["a", "b"]]), "V must hold real numbers"),
            (np.array([[1.0, None]], dtype=object), "V must hold real numbers"),
            (np.ones((2, 2), dtype=complex), "V must hold real numbers"),
            (sp.csr_array(np.ones((2, 2), dtype=complex)), "V must hold real numbers"),
            (np.array([["2020-01-01"]], dtype="datetime64[D]"), "V must hold real numbers"),
            ([[1.0], [1.0, 2.0]], "V must be a rectangular array"),
        ],
    )
    def test_bad_matrix(self, V: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            Linear(V)

    @pytest.mark.parametrize("V", ["data.csv", None, {"a": 1}])
    def test_wrong_type(self, V: Any) -> None:
        with pytest.raises(TypeError, match="V must hold real numbers"):
            Linear(V)

    def test_torch(self) -> None:
        torch = pytest.importorskip("torch")
        with pytest.raises(ValueError, match="NaN"):
            Linear(torch.tensor([[1.0, torch.nan]]))
        with pytest.raises(TypeError, match="sparse torch"):
            Linear(torch.ones(2, 2).to_sparse())

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_bad_entry_in_a_later_block(self, order: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("trimlearn._utils.validation.CHECK_ENTRIES", 10)
        V = np.array(sample(), order=order)
        V[-1, -1] = np.nan
        with pytest.raises(ValueError, match="V holds NaN"):
            Linear(V)

    def test_large_numbers_are_finite(self) -> None:
        layer = Linear(np.full((4, 4), 3e38, dtype=np.float32))  # the sum is not
        assert layer.n == layer.p == 4

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"K": 0}, "K must be an integer >= 1"),
            ({"K": 2.0}, "K must be an integer"),
            ({"K": True}, "K must be an integer"),
            ({"transpose": True}, "transpose=True needs K"),
            ({"center": np.ones(P + 1)}, "center must have shape"),
            ({"center": 1.0}, "center must have shape"),
            ({"center": np.full(P, np.nan)}, "center holds NaN"),
            ({"center": np.full(P, "a")}, "center must hold real numbers"),
            ({"scale": np.zeros(P)}, "scale must be > 0"),
            ({"scale": np.full(P, np.inf)}, "scale holds NaN or infinity"),
        ],
    )
    def test_bad_options(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            Linear(sample(), **options)

    def test_bad_shapes(self, backend: Backend) -> None:
        layer = Linear(backend.matrix(sample()), K=K)
        with pytest.raises(ValueError, match=r"x must have shape \(5, 3\)"):
            layer.predict(backend.array(np.ones((K, P))))
        with pytest.raises(ValueError, match=r"r must have shape \(2, 3\)"):
            layer.adjoint(backend.array(np.ones((3, K))), slice(0, 2))

    @pytest.mark.parametrize("rows", [[N], [-1], [True] * N, [0.0]])
    def test_bad_rows(self, backend: Backend, rows: list[Any]) -> None:
        with pytest.raises(IndexError, match="rows must be integers"):
            Block(Linear(backend.matrix(sample())), np.array(rows))

    def test_torch_mask(self) -> None:
        torch = pytest.importorskip("torch")
        with pytest.raises(IndexError, match="rows must be integers"):
            Block(Linear(torch.ones(3, 2)), torch.ones(3, dtype=torch.bool))

    def test_backward_slice(self) -> None:
        with pytest.raises(ValueError, match="step >= 1"):
            Block(Linear(sample()), slice(None, None, -1))


def test_copies_and_pickles(backend: Backend) -> None:
    layer = Linear(backend.matrix(sample()), K=2, intercept=True)
    x = backend.array(np.ones(layer.x_shape))
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        np.testing.assert_array_equal(to_numpy(twin.predict(x)), to_numpy(layer.predict(x)))


def test_widened_shares_the_data() -> None:
    layer = Linear(sample(), intercept=True)
    wide = layer.widened(4)
    assert wide.x_shape == (P + 1, 4)
    assert layer.x_shape == (P + 1,)
    assert wide.storage is layer.storage
