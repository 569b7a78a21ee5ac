"""trimlearn.datasets: what is loaded is what was stored, and what cannot be right is refused."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import sklearn.datasets
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from trimlearn.datasets import load_classic, load_digits_contaminated, load_judges, load_mnist, shift_labels
from trimlearn.datasets.locate import find_folder, user_cache
from trimlearn.datasets.mnist import _write_idx

# --- shifted labels ---------------------------------------------------------------------------------------------------


@given(
    y=st.lists(st.integers(0, 9), max_size=60),
    fraction=st.floats(0, 1),
    modulo=st.integers(2, 12),
    seed=st.integers(0, 2**32 - 1),
)
def test_shift_labels_changes_exactly_the_masked_rows(y, fraction, modulo, seed):
    y = np.array(y, dtype=np.int64)
    dirty, mask = shift_labels(y, fraction, modulo, seed)
    assert mask.sum() == round(fraction * y.size)
    assert_array_equal(dirty != y, mask)
    assert_array_equal(dirty[mask], (y[mask] + 1) % modulo)
    assert_array_equal(shift_labels(y, fraction, modulo, seed)[0], dirty)


def test_shift_labels_depends_on_the_seed_and_leaves_its_input_alone():
    y = np.arange(1000) % 10
    before = y.copy()
    masks = [shift_labels(y, 0.3, 10, seed)[1] for seed in range(3)]
    assert_array_equal(y, before)
    assert (masks[0] != masks[1]).any() and (masks[1] != masks[2]).any()


def test_shift_labels_keeps_the_dtype_and_does_not_overflow():
    dirty, _ = shift_labels(np.array([255, 3], dtype=np.uint8), 1.0, 10, seed=0)
    assert dirty.dtype == np.uint8
    assert dirty.tolist() == [6, 4]


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"fraction": -0.1}, "fraction"),
        ({"fraction": 1.1}, "fraction"),
        ({"fraction": float("nan")}, "fraction"),
        ({"fraction": True}, "fraction"),
        ({"fraction": "0.2"}, "fraction"),
        ({"modulo": 1}, "modulo"),
        ({"modulo": 10.0}, "modulo"),
        ({"y": [0.0, 1.0]}, "y"),
        ({"y": [[0, 1]]}, "y"),
        ({"y": [-1, 1]}, "y"),
    ],
)
def test_shift_labels_refuses_what_cannot_be_right(change, argument):
    arguments = {"y": [0, 1, 2], "fraction": 0.2, "modulo": 10, "seed": 0} | change
    with pytest.raises(ValueError, match=rf"^{argument} must"):
        shift_labels(**arguments)


def test_digits_are_scikit_learns_with_a_fifth_of_the_labels_shifted():
    digits = load_digits_contaminated(fraction=0.2, seed=3)
    X, y = sklearn.datasets.load_digits(return_X_y=True)
    assert_array_equal(digits.X * 16, X)
    assert_array_equal(digits.y_true, y)
    assert digits.is_wrong.sum() == round(0.2 * 1797)
    assert_array_equal(digits.y, np.where(digits.is_wrong, (y + 1) % 10, y))


# --- tables -----------------------------------------------------------------------------------------------------------


def test_judges_are_the_published_numbers():
    judges = load_judges()
    assert judges.data.shape == (43, 12) and judges.data.dtype == np.float64
    assert " ".join(judges.feature_names) == "CONT INTG DMNR DILG CFMG DECI PREP FAMI ORAL WRIT PHYS RTEN"
    assert judges.names[:2] == ("AARONSON,L.H.", "ALEXANDER,J.M.") and len(set(judges.names)) == 43
    assert judges.data[0].tolist() == [5.7, 7.9, 7.7, 7.3, 7.1, 7.4, 7.1, 7.1, 7.1, 7, 8.3, 7.8]
    assert judges.data[judges.names.index("CALLAHAN,R.J."), 0] == 10.6  # the largest number of contacts
    assert "New Haven Register, 14 January 1977" in judges.source


def test_classic_tables_keep_numbers_and_row_names(data_home):
    hbk = load_classic("hbk", data_home)
    assert hbk.data.shape == (75, 4) and hbk.names == ()
    assert hbk.data[0].tolist() == [10.1, 19.6, 28.3, 9.7]
    animals = load_classic("Animals2", data_home)
    assert animals.names[1] == "Cow" and animals.data[1].tolist() == [465, 423]
    assert load_classic("radarImage", data_home).data.shape == (1573, 5)  # a gzipped one


def test_classic_tables_leave_out_words_and_read_na_as_nan(data_home):
    assert load_classic("education", data_home).feature_names == ("Region", "X1", "X2", "X3", "Y")
    air = load_classic("airmay", data_home).data
    assert np.isnan(air).sum(axis=0).tolist() == [4, 0, 0, 5]


def test_unknown_classic_name_lists_the_known_ones(data_home):
    with pytest.raises(ValueError, match=r"name must be one of .*hbk.*; got 'no-such'"):
        load_classic("no-such", data_home)


# --- MNIST ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def homes(tmp_path, monkeypatch):
    """Three empty data folders, explicit, by variable, and cache, and no network."""
    monkeypatch.setenv("TRIMLEARN_DATA", str(tmp_path / "variable"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def offline(*args, **kwargs):
        raise OSError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", offline)
    return tmp_path / "explicit", tmp_path / "variable", tmp_path / "cache" / "trimlearn"


def put_mnist(home, n=5, fill=0, subset="t10k"):
    """A tiny MNIST: n images of the grey value ``fill``, labels 0, 1, 2, ..."""
    folder = home / "mnist"
    folder.mkdir(parents=True)
    _write_idx(folder / f"{subset}-images-idx3-ubyte.gz", np.full((n, 28, 28), fill, np.uint8))
    _write_idx(folder / f"{subset}-labels-idx1-ubyte.gz", np.arange(n, dtype=np.uint8))
    return folder


def test_places_are_looked_at_in_order(homes):
    explicit, variable, cache = homes
    for fill, home in ((3, cache), (2, variable), (1, explicit)):
        put_mnist(home, fill=fill)
        X, y = load_mnist("test", data_home=explicit)
        assert X.shape == (5, 784) and (X == fill).all() and y.tolist() == [0, 1, 2, 3, 4]


def test_missing_data_is_one_error_that_names_every_place(homes):
    explicit, variable, cache = homes
    with pytest.raises(FileNotFoundError) as caught:
        load_mnist("test", data_home=explicit)
    message = str(caught.value)
    for part in (explicit, variable, cache, "OpenML", "no network", "--data", "$TRIMLEARN_DATA", "mnist/"):
        assert str(part) in message
    assert "\n" not in message
    with pytest.raises(FileNotFoundError, match="classic_robust"):
        load_classic("hbk", data_home=explicit)


def test_openml_fills_the_cache_once(homes, monkeypatch):
    explicit, _, cache = homes
    rng = np.random.default_rng(0)
    pixels, target = rng.integers(0, 256, (9, 784), dtype=np.uint8), rng.integers(0, 10, 9).astype(str)
    calls = []

    def openml(name, **kwargs):
        calls.append(name)
        return sklearn.utils.Bunch(data=pixels.astype(float), target=target)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", openml)
    monkeypatch.setattr("trimlearn.datasets.mnist.N_TRAIN", 6)
    for subset, rows in (("test", slice(6, 9)), ("train", slice(0, 6)), ("test", slice(6, 9))):
        X, y = load_mnist(subset, data_home=explicit)
        assert_array_equal(X, pixels[rows])
        assert_array_equal(y, target[rows].astype(int))
    assert calls == ["mnist_784"]
    assert not list(cache.rglob("*.part"))


def test_float_pixels_are_scaled_to_the_unit_interval(homes):
    put_mnist(homes[0], fill=255)
    X, _ = load_mnist("test", data_home=homes[0], dtype="float32")
    assert X.dtype == np.float32 and (X == 1).all()


@pytest.mark.parametrize("cut", ["gzip stream", "values", "header"])
def test_truncated_file_is_named(homes, cut):
    path = put_mnist(homes[0]) / "t10k-images-idx3-ubyte.gz"
    if cut == "gzip stream":
        path.write_bytes(path.read_bytes()[:-9])
    else:
        path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())[: -1 if cut == "values" else 7]))
    with pytest.raises(ValueError, match=r"t10k-images-idx3-ubyte\.gz is truncated or damaged"):
        load_mnist("test", data_home=homes[0])


def test_wrong_magic_and_unequal_lengths_are_named(homes):
    folder = put_mnist(homes[0])
    labels = folder / "t10k-labels-idx1-ubyte.gz"
    _write_idx(labels, np.zeros(4, np.uint8))
    with pytest.raises(ValueError, match="5 images but 4 labels"):
        load_mnist("test", data_home=homes[0])
    _write_idx(labels, np.zeros((5, 1), np.uint8))
    with pytest.raises(ValueError, match="0x00000802, expected 0x00000801"):
        load_mnist("test", data_home=homes[0])
    labels.unlink()
    with pytest.raises(FileNotFoundError, match=r"has no t10k-labels-idx1-ubyte\.gz"):
        load_mnist("test", data_home=homes[0])


@pytest.mark.parametrize("bad", [{"subset": "validation"}, {"dtype": "float16"}])
def test_load_mnist_names_the_bad_argument(bad):
    with pytest.raises(ValueError, match=f"^{next(iter(bad))} must be"):
        load_mnist(**bad)


def test_real_mnist_has_the_published_counts(data_home):
    X, y = load_mnist("test", data_home)
    assert X.shape == (10_000, 784) and X.dtype == np.uint8 and y.dtype == np.int64
    assert np.bincount(y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert X.flags.writeable


# --- places -----------------------------------------------------------------------------------------------------------


def test_cache_follows_xdg_and_empty_variables_count_as_unset(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache() == tmp_path / "trimlearn"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert user_cache() == tmp_path / "home" / ".cache" / "trimlearn"
    monkeypatch.setenv("TRIMLEARN_DATA", "")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "file").touch()
    assert find_folder("mnist") is None  # "" must not mean the working directory
