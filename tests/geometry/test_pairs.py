"""Which images overlap, told from matches and from pictures."""

from __future__ import annotations

import numpy as np
import pytest

from cameras import SIZE, ring
from trimlearn.geometry.panorama import pairs as module
from trimlearn.geometry.panorama.pairs import Pairs, make_pairs, match_pairs
from trimlearn.geometry.panorama.trees import components


def scene(seed: int = 0, width: int = 700, height: int = 260) -> np.ndarray:
    """A picture with something everywhere."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (height // 10, width // 10), dtype=np.uint8)
    fine = rng.integers(0, 60, (height, width), dtype=np.uint8)
    return np.kron(coarse, np.ones((10, 10), np.uint8))[:height, :width] // 2 + fine


def crops(step: int = 100, width: int = 240, m: int = 4) -> list[np.ndarray]:
    picture = scene()
    return [picture[:, k * step : k * step + width] for k in range(m)]


def edges(pairs: Pairs) -> list[tuple[int, int]]:
    return [(p.i, p.j) for p in pairs.pairs]


# -- matches of one's own ---------------------------------------------------------------------------------------------


def test_overlaps_are_verified_and_random_matches_are_not() -> None:
    found = ring(m=4, closed=False)
    rng = np.random.default_rng(0)
    noise = (0, 3, rng.uniform(0, 479, (80, 2)), rng.uniform(0, 479, (80, 2)))
    pairs = make_pairs([*found.correspondences, noise], found.sizes)
    assert edges(pairs) == [(0, 1), (1, 2), (2, 3)]
    assert [(r.i, r.j, r.matches) for r in pairs.rejected] == [(0, 3, 80)]
    assert "agree" in pairs.rejected[0].reason
    inliers = np.concatenate([p.inliers for p in pairs.pairs])
    assert np.mean(inliers == found.right) > 0.99
    assert pairs.components == [[0, 1, 2, 3]]


def test_a_homography_goes_from_the_pixels_of_i_to_those_of_j() -> None:
    found = ring(m=2, closed=False, noise=0.1)
    (i, j, src, dst), *_ = found.correspondences
    pair, swapped = (make_pairs([given], found.sizes).pairs[0] for given in ((i, j, src, dst), (j, i, dst, src)))
    true = found.homography(i, j)
    assert np.allclose(pair.homography, true / true[2, 2], rtol=0.01, atol=0.5 * np.abs(true).min())
    back = swapped.homography @ pair.homography
    assert np.allclose(back / back[2, 2], np.eye(3), atol=0.5)


def test_too_few_matches_are_no_overlap() -> None:
    found = ring(m=2, closed=False, wrong=0.0)
    i, j, src, dst = found.correspondences[0]
    pairs = make_pairs([(i, j, src[:7], dst[:7])], found.sizes)
    assert len(pairs) == 0
    assert pairs.rejected[0].reason == "7 matches only"
    with pytest.raises(ValueError, match=r"no two of the 2 images overlap: .* image 0 and image 1, has 7 matches only"):
        pairs.largest()
    assert len(make_pairs([(0, 1, np.empty((0, 2)), [])], found.sizes)) == 0
    with pytest.raises(ValueError, match="no pair with matches"):
        make_pairs([], found.sizes).largest()


def test_matches_on_a_line_are_no_overlap() -> None:
    src = np.column_stack([np.arange(50.0), np.arange(50.0)])
    assert len(make_pairs([(0, 1, src, src + 3.0)], [SIZE, SIZE])) == 0


def test_the_largest_group_is_numbered_anew_and_the_others_are_named() -> None:
    found = ring(m=6, closed=False)
    some = [c for c in found.correspondences if c[:2] != (1, 2)]
    pairs = make_pairs(some, found.sizes, names=[f"photo {k}" for k in "abcdef"])
    assert pairs.components == [[2, 3, 4, 5], [0, 1]]
    group, images = pairs.largest()
    assert images == [2, 3, 4, 5]
    assert edges(group) == [(0, 1), (1, 2), (2, 3)]
    assert group.names == ("photo c", "photo d", "photo e", "photo f")
    group.check_connected()
    with pytest.raises(ValueError, match="photo a, photo b overlap with none of photo c, photo d"):
        pairs.check_connected()


@pytest.mark.parametrize(
    ("correspondences", "sizes", "message"),
    [
        ([(0, 0, np.zeros((20, 2)), np.zeros((20, 2)))], [SIZE] * 2, r"two different images of 2.*\(0, 0\)"),
        ([(0, 2, np.zeros((20, 2)), np.zeros((20, 2)))], [SIZE] * 2, r"j of correspondences .* from 0 to 1, got 2"),
        ([(0, 1, [], []), (1, 0, [], [])], [SIZE] * 2, r"once each pair; got \(1, 0\)"),
        ([], [SIZE], "at least two images"),
        ([(0, 1, np.zeros((20, 2)), np.zeros((19, 2)))], [SIZE] * 2, "20 and 19"),
        ([(0, 1.0, [], [])], [SIZE] * 2, r"j of correspondences must be .* an integer .* got 1.0"),
        ([("a", 1, [], [])], [SIZE] * 2, r"i of correspondences must be .* an integer .* got 'a'"),
        ([(0, -1, [], [])], [SIZE] * 2, r"got -1"),
        ([(0, 1, [])], [SIZE] * 2, r"correspondences must hold \(i, j, src, dst\)"),
        ([7], [SIZE] * 2, r"correspondences must hold \(i, j, src, dst\)"),
        ([], [SIZE, (480, 640, 3)], r"two integers >= 1; image 1 has \(480, 640, 3\)"),
        ([], [(0, 0), SIZE], r"image 0 has \(0, 0\)"),
        ([], [(-640, 480), SIZE], "image 0 has"),
        ([], [(np.nan, 480), SIZE], "image 0 has"),
        ([], [("640", 480), SIZE], "image 0 has"),
        ([], [640, 480], "image 0 has 640"),
        ([], "ab", "at least two images|image 0 has"),
        ([], None, "at least two images"),
        ([(0, 1, np.full((20, 2), np.nan), np.zeros((20, 2)))], [SIZE] * 2, "NaN"),
    ],
)
def test_bad_matches_are_refused(correspondences: list, sizes: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_pairs(correspondences, sizes)


def test_sizes_that_points_do_not_fit_into() -> None:
    found = ring(m=4, closed=False)
    swapped = r"\(width, height\): point \(6\d\d.*, .*\) of image 0 is outside 480 × 640; are they swapped\?"
    with pytest.raises(ValueError, match=swapped):
        make_pairs(found.correspondences, [SIZE[::-1]] * 4)
    with pytest.raises(ValueError, match="outside 64 × 48; give its size in the pixels"):
        make_pairs(found.correspondences, [(64, 48)] * 4)
    src = np.random.default_rng(0).uniform(0, 479, (50, 2))
    with pytest.warns(UserWarning, match="of image 1 is outside 640 × 480"):
        assert len(make_pairs([(0, 1, src, src + np.array([300.0, 100.0]))], [SIZE] * 2)) == 1
    assert make_pairs([(0, 1, src, src)], np.array([SIZE] * 2)).sizes == (SIZE, SIZE)


@pytest.mark.parametrize("bad", [-1, "x", 1.5, True, 1 << 32])
def test_a_bad_random_state_is_not_a_lack_of_overlap(bad: object) -> None:
    found = ring(m=2, closed=False)
    with pytest.raises(ValueError, match="random_state must be"):
        make_pairs(found.correspondences, found.sizes, random_state=bad)
    with pytest.raises(ValueError, match="random_state must be"):
        match_pairs(crops(m=2), random_state=bad)


@pytest.mark.parametrize("good", [3, np.int64(3), None, np.random.RandomState(0), np.random.default_rng(0)])
def test_random_states(good: object) -> None:
    found = ring(m=2, closed=False)
    assert len(make_pairs(found.correspondences, found.sizes, random_state=good)) == 1


def test_one_of_a_kind_is_said_so() -> None:
    found = ring(m=4, closed=False)
    with pytest.raises(ValueError, match="image 3 overlaps with none of image 0, image 1, image 2; leave it out"):
        make_pairs(found.correspondences[:2], found.sizes).check_connected()
    assert make_pairs([(0, 1, [[1.0, 2.0]], [[3.0, 4.0]])], found.sizes).rejected[0].reason == "1 match only"


def test_components() -> None:
    assert components([], 3) == [[0], [1], [2]]
    assert components([(4, 2), (0, 4), (3, 1)], 6) == [[0, 2, 4], [1, 3], [5]]


# -- pictures ---------------------------------------------------------------------------------------------------------


def test_pictures_of_one_scene_overlap_and_another_does_not() -> None:
    pytest.importorskip("cv2")
    pairs = match_pairs([*crops(m=3), scene(seed=9)[:, :240]])
    assert edges(pairs) == [(0, 1), (0, 2), (1, 2)]
    assert pairs.components == [[0, 1, 2], [3]]
    shifts = [p.homography[:2, 2].round().tolist() for p in pairs.pairs]
    assert shifts == [[-100, 0], [-200, 0], [-100, 0]]
    assert pairs.sizes == ((240, 260),) * 4
    assert pairs.names[3] == "image 3"


def test_an_empty_picture_and_the_same_picture_twice() -> None:
    pytest.importorskip("cv2")
    same = crops(m=1)[0]
    pairs = match_pairs([same, same.copy(), np.zeros((200, 200), np.uint8)])
    assert edges(pairs) == [(0, 1)]
    assert np.allclose(pairs.pairs[0].homography, np.eye(3), atol=1e-6)


def test_of_many_pictures_likely_pairs_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cv2")
    monkeypatch.setattr(module, "MANY", 3)
    monkeypatch.setattr(module, "NEIGHBOURS", 2)
    shown = crops(m=5)
    order = [3, 0, 4, 1, 2]  # neighbours in the scene are not neighbours in the list
    pairs = match_pairs([shown[k] for k in order])
    looked = len(pairs.pairs) + len(pairs.rejected)
    assert looked < 10
    assert pairs.components == [[0, 1, 2, 3, 4]]


@pytest.mark.parametrize("images", [[], [np.zeros((99, 99), np.uint8)], "ab"])
def test_fewer_than_two_pictures(images: list) -> None:
    with pytest.raises(ValueError, match="at least two"):
        match_pairs(images)


def test_pictures_one_after_the_other() -> None:
    pytest.importorskip("cv2")
    assert edges(match_pairs(iter(crops(m=2)))) == [(0, 1)]


def test_the_doubts_of_a_pair_are_told_once_with_the_names_of_its_images() -> None:
    rng = np.random.default_rng(0)
    src = rng.uniform(0, 400, (200, 2))
    dst = src + np.where(np.arange(200)[:, None] < 110, [100.0, 20.0], [160.0, -10.0])
    with pytest.warns(UserWarning, match="left and right: 90 matches agree with another homography") as heard:
        pairs = make_pairs([(0, 1, src, dst)], [(640, 480)] * 2, names=["left", "right"])
    assert len(heard) == 1 and len(pairs.pairs[0].doubts) == 1


def test_names_are_as_many_as_images() -> None:
    with pytest.raises(ValueError, match="names must be as many as images, 2, got 1"):
        match_pairs(crops(m=2), names=["left"])
