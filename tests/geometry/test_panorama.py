"""All images at once: rotations, focal lengths and homographies from matches of which many are wrong."""

from __future__ import annotations

import pickle
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from cameras import SIZE, Ring, ring, seen
from paper.panorama import experiment
from paper.panorama.smart_alone import smart_alone
from trimlearn.datasets import find_photos
from trimlearn.datasets.locate import find_folder
from trimlearn.geometry import TrimmedPanorama
from trimlearn.geometry.homography.transfer import transform
from trimlearn.geometry.panorama.focals import estimate_focals
from trimlearn.geometry.panorama.pairs import make_pairs, match_pairs
from trimlearn.geometry.panorama.scene import Scene
from trimlearn.geometry.panorama.trees import central, chain, spanning_tree

FALSE = (0, 6)  # a pair of the loop of 12 that is wrong as a whole


@cache
def loop(false_matches: int | None = None) -> Ring:
    """The loop of 12: 40 % of all matches wrong, and one pair whose matches agree on what is not there."""
    return ring(m=12, wrong=0.4, false_pairs=(FALSE,), false_matches=false_matches)


@cache
def fitted(model: str = "rotation") -> TrimmedPanorama:
    scene = loop()
    return TrimmedPanorama(model=model).fit(scene.correspondences, scene.sizes)


def angles(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Degrees between rotations, both relative to the first."""
    R = (found @ found[0].T) @ np.swapaxes(true @ true[0].T, 1, 2)
    return np.degrees(np.arccos(np.clip((np.trace(R, axis1=1, axis2=2) - 1) / 2, -1, 1)))


def pair_errors(panorama: TrimmedPanorama, scene: Ring) -> list[float]:
    """How far the points of every true overlap are put from where they are, at most, px."""
    grid = np.stack(np.meshgrid(*(np.linspace(0, side - 1, 12) for side in SIZE)), axis=-1).reshape(-1, 2)
    errors = []
    for i, j, *_ in scene.correspondences:
        there, inside = seen(scene.homography(i, j), grid)
        if inside.any():
            off = transform(panorama.pair_homography(i, j), grid[inside]) - there[inside]
            errors.append(float(np.linalg.norm(off, axis=1).max()))
    return errors


# -- the loop of 12 ---------------------------------------------------------------------------------------------------


def test_rotations_and_focal_lengths_are_found_although_a_whole_pair_is_wrong() -> None:
    panorama, scene = fitted(), loop()
    assert panorama.rotations_ is not None
    assert panorama.focals_ is not None
    assert angles(panorama.rotations_, scene.rotations).max() < 0.1
    assert np.abs(panorama.focals_ / scene.focals - 1).max() < 0.003
    assert max(pair_errors(panorama, scene)) < 0.5


def test_the_wrong_pair_is_trimmed_away_by_the_joint_problem() -> None:
    panorama, scene = fitted(), loop()
    wrong = np.concatenate([np.full(len(src), (i, j) == FALSE) for i, j, src, _ in scene.correspondences])
    assert wrong.sum() == 150
    assert panorama.raw_weights_[wrong].sum() <= 1  # a random match may be right by chance
    assert [(r.i, r.j) for r in panorama.report_ if not r.agrees] == [FALSE]
    lost = next(r for r in panorama.report_ if not r.agrees)
    assert lost.own_inliers > 80  # by itself it looks like any other pair
    assert lost.inliers <= 1
    assert np.mean(panorama.inlier_mask_ == scene.right) > 0.995
    assert panorama.contamination_ == pytest.approx(1 - scene.right.mean(), abs=0.01)


def test_one_capped_simplex_trims_the_wrong_pair_as_well() -> None:
    """With a share given no pair has a quota of its own: what goes is decided by the joint problem alone."""
    scene = loop()
    panorama = TrimmedPanorama(contamination=0.47).fit(scene.correspondences, scene.sizes)
    assert panorama.raw_weights_.sum() == pytest.approx(0.53 * len(scene.right), rel=1e-9)
    assert not np.any(panorama.raw_weights_[~scene.right] > 0)
    assert angles(panorama.rotations_, scene.rotations).max() < 0.1


def test_a_number_of_matches_to_trim() -> None:
    scene = ring(m=2, closed=False)
    panorama = TrimmedPanorama(contamination=80).fit(scene.correspondences, scene.sizes)
    assert panorama.raw_weights_.sum() == pytest.approx(len(scene.right) - 80)
    assert panorama.contamination_ == pytest.approx(80 / len(scene.right))


def test_a_wrong_pair_with_more_matches_than_any_other() -> None:
    scene = loop(false_matches=400)
    panorama = TrimmedPanorama().fit(scene.correspondences, scene.sizes)
    assert angles(panorama.rotations_, scene.rotations).max() < 0.1
    assert [(r.i, r.j) for r in panorama.report_ if not r.agrees] == [FALSE]


def test_homographies_of_the_loop() -> None:
    panorama, scene = fitted("homography"), loop()
    assert panorama.rotations_ is None
    assert panorama.focals_ is None
    assert max(pair_errors(panorama, scene)) < 1.0
    assert np.mean(panorama.inlier_mask_ == scene.right) > 0.995


@pytest.mark.parametrize("model", ["rotation", "homography"])
def test_every_inlier_is_within_the_threshold_of_the_model_returned(model: str) -> None:
    panorama, scene = fitted(model), loop()
    pair = np.repeat(np.arange(len(scene.correspondences)), [len(c[2]) for c in scene.correspondences])
    errors = np.empty(len(pair))
    for k, (i, j, src, dst) in enumerate(scene.correspondences):
        there = transform(panorama.pair_homography(i, j), src) - dst
        back = transform(panorama.pair_homography(j, i), dst) - src
        errors[pair == k] = np.sqrt(np.sum(there**2, axis=1) + np.sum(back**2, axis=1))
    near = panorama.outlier_scores_ < 100
    assert np.allclose(panorama.outlier_scores_[near], errors[near], rtol=1e-6)
    assert np.array_equal(panorama.inlier_mask_, panorama.outlier_scores_ <= panorama.threshold_)
    assert errors[panorama.inlier_mask_].max() <= panorama.threshold_ * (1 + 1e-9)
    assert np.array_equal(panorama.weights_ > 0, panorama.inlier_mask_)


def test_homographies_lead_to_the_reference_image() -> None:
    panorama = fitted()
    r = panorama.reference_
    assert np.allclose(panorama.homographies_[r], np.eye(3), atol=1e-9)
    assert panorama.rotations_ is not None
    assert np.allclose(panorama.rotations_[r], np.eye(3), atol=1e-12)
    beside = (r + 1) % 12
    assert np.allclose(panorama.homographies_[beside], panorama.pair_homography(beside, r))
    opposite = panorama.pair_homography(0, 6) @ [SIZE[0] / 2, SIZE[1] / 2, 1]
    assert opposite[2] < 0  # what image 0 sees is behind image 6


def test_the_same_again_and_an_equal_start() -> None:
    scene = ring(m=5, closed=False)
    a, b = (TrimmedPanorama(random_state=3).fit(scene.correspondences, scene.sizes) for _ in range(2))
    assert np.array_equal(a.rotations_, b.rotations_)
    c = clone(TrimmedPanorama(model="homography", threshold=2.0, polish=False))
    assert c.get_params()["threshold"] == 2.0
    assert c.fit(scene.correspondences, scene.sizes).threshold_ == 2.0


# -- SMART itself -----------------------------------------------------------------------------------------------------


def test_smart_gets_there_by_itself_and_the_polish_hardly_moves_it() -> None:
    scene = ring(m=12, barrel=0.04, wrong=0.4)
    alone = smart_alone(make_pairs(scene.correspondences, scene.sizes))
    assert alone.start > 100 * alone.smart  # the chain ends far from the loop's other end
    assert alone.smart < alone.polished * (1 + 1e-5)
    assert alone.moved < 0.01
    without = TrimmedPanorama(polish=False).fit(loop().correspondences, loop().sizes)
    assert without.polish_shift_ == 0.0
    assert fitted().polish_shift_ < 0.05
    assert angles(without.rotations_, loop().rotations).max() < 0.1


def test_a_lens_that_bends_lines_does_not_open_the_loop() -> None:
    """Each overlap alone asks for too long a focal length, so that a chain of all turns by far less than 360°."""
    scene = ring(m=12, barrel=0.04, wrong=0.3)
    pairs = make_pairs(scene.correspondences, scene.sizes)
    steps = np.stack([p.homography for p in pairs.pairs])
    B = chain(list(range(11)), [(p.i, p.j) for p in pairs.pairs], steps)
    last = pairs.pairs[-1]
    assert (last.i, last.j) == (11, 0)
    ends = transform(B[0] @ np.linalg.inv(B[11]), last.src[last.inliers]) - last.dst[last.inliers]
    assert np.median(np.linalg.norm(ends, axis=1)) > 100
    panorama = TrimmedPanorama().fit(pairs)
    assert all(r.agrees for r in panorama.report_)
    assert panorama.report_[-1].error < 6
    assert np.abs(panorama.focals_ / 600 - 1).max() < 0.03


def shifted(scene: Ring, k: int, by: tuple[float, float]) -> list:
    """The matches with those of pair k all on a shift that is not there."""
    i, j, *_ = scene.correspondences[k]
    src = np.random.default_rng(3).uniform(0, [639 - by[0], 479 - by[1]], (100, 2))
    return [*scene.correspondences[:k], (i, j, src, src + by), *scene.correspondences[k + 1 :]]


@pytest.mark.parametrize("by", [200.0, 250.0, 300.0, 320.0])
def test_a_pair_of_the_loop_itself_that_is_wrong_as_a_whole(by: float) -> None:
    """The loop could bend to meet it, and any other pair could be left out instead; but not one focal length fits."""
    scene = ring(m=12, tilt=0.0, wrong=0.4)
    panorama = TrimmedPanorama().fit(shifted(scene, 4, (by, 30.0)), scene.sizes)
    assert [(r.i, r.j) for r in panorama.report_ if not r.agrees] == [(4, 5)]
    assert panorama.misfit_ < 1.5
    assert panorama.threshold_ < 5
    assert np.abs(panorama.focals_ / 600 - 1).max() < 0.01
    assert angles(panorama.rotations_, scene.rotations).max() < 1.0
    assert panorama.doubts_ == []


def test_a_loop_of_homographies_that_does_not_close_is_told() -> None:
    """Of a single loop any pair may be the wrong one, where nothing is common to the images."""
    scene = ring(m=4, step=20.0, tilt=0.0, closed=False)
    wrong = np.random.default_rng(0).uniform(0, [300, 400], (100, 2))
    given = [*scene.correspondences, (0, 3, wrong, wrong + np.array([300.0, 30.0]))]
    with pytest.warns(UserWarning, match="may be (the wrong one|wrong as a whole)"):
        panorama = TrimmedPanorama(model="homography").fit(given, scene.sizes)
    assert len(panorama.doubts_) == 1


def test_a_pair_that_contradicts_a_chain_may_not_be_the_wrong_one() -> None:
    scene = ring(m=6, step=30.0, tilt=0.0, closed=False, false_pairs=((0, 5),))
    with pytest.warns(UserWarning, match="image 0 and image 5 contradicts the others.*another may be the wrong one"):
        panorama = TrimmedPanorama().fit(scene.correspondences, scene.sizes)
    assert [(r.i, r.j) for r in panorama.report_ if not r.agrees] == [(0, 5)]
    assert fitted().doubts_ == []  # a loop outvotes it


def with_rivals(scene: Ring, share: float, pairs: tuple[int, ...]) -> list[tuple[int, int, np.ndarray, np.ndarray]]:
    """The matches of a ring, a share of those of some pairs seen elsewhere, all by the same."""
    given = list(scene.correspondences)
    for k in pairs:
        i, j, src, dst = given[k]
        off = np.random.default_rng(k).random(len(src)) < share
        given[k] = (i, j, src, np.where(off[:, None], dst + np.array([60.0, -40.0]), dst))
    return given


def test_rivals_of_several_pairs_are_told_in_one_warning_that_names_them() -> None:
    scene = ring(m=6, step=30.0, tilt=0.0, closed=False)
    with pytest.warns(UserWarning, match="agree with another placing") as heard:
        panorama = TrimmedPanorama().fit(with_rivals(scene, 0.45, (1, 3)), scene.sizes)
    assert len(panorama.doubts_) == len(heard) == 1
    said = str(heard[0].message)
    assert "image 1 and image 2 (" in said and "image 3 and image 4 (" in said and "image 0" not in said


def test_few_matches_elsewhere_are_no_rival_of_a_pair(recwarn: pytest.WarningsRecorder) -> None:
    scene = ring(m=6, step=30.0, tilt=0.0, closed=False)
    assert TrimmedPanorama().fit(with_rivals(scene, 0.2, (1, 3)), scene.sizes).doubts_ == [] and not recwarn


# -- other scenes -----------------------------------------------------------------------------------------------------


def test_a_chain_with_zooms() -> None:
    scene = ring(m=6, step=18.0, closed=False, spread=0.35, seed=5)
    panorama = TrimmedPanorama().fit(scene.correspondences, scene.sizes)
    assert panorama.focals_ is not None
    assert np.ptp(np.log(scene.focals)) > 0.4
    assert np.abs(panorama.focals_ / scene.focals - 1).max() < 0.01
    assert angles(panorama.rotations_, scene.rotations).max() < 0.3
    assert panorama.reference_ in (2, 3)  # in the middle


def test_exact_matches_give_the_exact_answer() -> None:
    scene = ring(m=4, closed=False, wrong=0.2, noise=0.0)
    panorama = TrimmedPanorama().fit(scene.correspondences, scene.sizes)
    assert angles(panorama.rotations_, scene.rotations).max() < 1e-4
    assert np.mean(panorama.inlier_mask_ == scene.right) > 0.99


def test_two_images() -> None:
    scene = ring(m=2, closed=False, matches=300)
    panorama = TrimmedPanorama().fit(scene.correspondences, scene.sizes)
    assert np.abs(panorama.focals_ / scene.focals - 1).max() < 0.02
    assert max(pair_errors(panorama, scene)) < 1.0


def test_a_camera_that_does_not_turn_tells_no_focal_length() -> None:
    scene = ring(m=3, step=0.0, tilt=0.0, closed=False)
    assert not estimate_focals(Scene(make_pairs(scene.correspondences, scene.sizes))).known
    with pytest.warns(UserWarning, match="do not tell the focal length"):
        panorama = TrimmedPanorama().fit(scene.correspondences, scene.sizes)
    assert np.all((panorama.focals_ > 300) & (panorama.focals_ < 3000))
    assert np.allclose(panorama.homographies_, np.eye(3), atol=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TrimmedPanorama(model="homography").fit(scene.correspondences, scene.sizes)


def test_a_camera_that_moves_along_a_plane() -> None:
    rng = np.random.default_rng(0)
    true = np.array([[[1, 0.02, 90], [-0.03, 1, 20], [3e-4, 1e-4, 1]], [[0.9, 0.1, 120], [0, 1.1, -30], [-4e-4, 0, 1]]])
    points = [rng.uniform(150, 479, (100, 2)) for _ in true]
    matches = [(k, k + 1, p, transform(H, p)) for k, (p, H) in enumerate(zip(points, true, strict=True))]
    panorama = TrimmedPanorama(model="homography").fit(matches, [(800, 640)] * 3)
    assert np.allclose(panorama.pair_homography(0, 1), true[0], rtol=1e-4, atol=1e-7)
    assert panorama.misfit_ < 1e-3
    with pytest.warns(UserWarning, match='model="homography"'):
        turned = TrimmedPanorama().fit(matches, [(800, 640)] * 3)
    assert turned.misfit_ > 5


# -- bad input --------------------------------------------------------------------------------------------------------


def test_images_that_do_not_hang_together_are_named() -> None:
    scene = ring(m=5, closed=False)
    some = [c for c in scene.correspondences if c[:2] != (1, 2)]
    with pytest.raises(ValueError, match="image 0, image 1 overlap with none of image 2, image 3, image 4"):
        TrimmedPanorama().fit(some, scene.sizes)
    with pytest.raises(ValueError, match="no two of the 5 images overlap"):
        TrimmedPanorama().fit([(0, 1, np.zeros((3, 2)), np.zeros((3, 2)))], scene.sizes)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"model": "affine"}, "model"),
        ({"contamination": 1.0}, "contamination=1.0"),
        ({"contamination": -3}, "contamination=-3"),
        ({"contamination": "half"}, "contamination='half'"),
        ({"contamination": True}, "contamination must be a number"),
        ({"threshold": 0.0}, "threshold"),
        ({"threshold": 1e-9}, "leaves no match"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict, message: str) -> None:
    scene = ring(m=3, closed=False)
    with pytest.raises(ValueError, match=message):
        TrimmedPanorama(**parameters).fit(scene.correspondences, scene.sizes)


def test_sizes() -> None:
    scene = ring(m=3, closed=False)
    with pytest.raises(ValueError, match="sizes must be given"):
        TrimmedPanorama().fit(scene.correspondences)
    pairs = make_pairs(scene.correspondences, scene.sizes)
    with pytest.raises(ValueError, match="sizes must be those of pairs"):
        TrimmedPanorama().fit(pairs, [(100, 100)] * 3)


@pytest.mark.parametrize(
    ("i", "j", "message"), [(0, 12, "j must be .* 0 to 11, got 12"), (-1, 0, "i must"), ("a", 1, "i must")]
)
def test_a_homography_of_an_image_that_is_not_there(i: object, j: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted().pair_homography(i, j)  # type: ignore[arg-type]


def test_random_states() -> None:
    scene = ring(m=2, closed=False)
    for good in (np.random.default_rng(0), np.random.RandomState(0), None):
        TrimmedPanorama(random_state=good).fit(scene.correspondences, scene.sizes)
    with pytest.raises(ValueError, match="random_state must be an integer"):
        TrimmedPanorama(random_state="x").fit(scene.correspondences, scene.sizes)


# -- trees ------------------------------------------------------------------------------------------------------------


def test_chains_along_a_tree() -> None:
    edges = [(0, 1), (2, 1), (2, 3), (3, 0)]
    assert sorted(spanning_tree(edges, 4, np.array([3.0, 2.0, 5.0, 1.0]))) == [0, 1, 2]
    steps = np.random.default_rng(0).standard_normal((4, 3, 3)) + 3 * np.eye(3)
    B = chain([2, 0, 1], edges, steps)
    assert np.array_equal(B[0], np.eye(3))
    for k in (0, 1, 2):
        i, j = edges[k]
        assert np.allclose(B[j], steps[k] @ B[i])
    assert central([(0, 1), (0, 2), (0, 3)], 4) == 0


# -- photographs ------------------------------------------------------------------------------------------------------


@pytest.fixture
def photographs(data_home: Path) -> tuple[Path, ...]:
    pytest.importorskip("cv2")
    if find_folder(experiment.FOLDER, data_home, holding="*.npz") is None:
        pytest.skip("the photographs of autostitch_denny are not there: set TRIMLEARN_DATA")
    return find_photos(experiment.FOLDER, data_home=data_home)


def test_the_circle_of_photographs_closes_and_is_no_worse_than_chained_ransac(photographs: tuple[Path, ...]) -> None:
    files = photographs
    pairs = match_pairs(files, max_features=1500)
    assert {(p.i, p.j) for p in pairs.pairs} >= {(k, k + 1) for k in range(14)} | {(0, 14)}
    reference = experiment.load_reference(files[0].parent / "reference_homographies.npz", len(files))
    found = {result.name: result for result in experiment.compare(pairs, reference)}
    joint, rival = found[experiment.JOINT], found[experiment.RIVAL]
    assert joint.median <= rival.median
    assert joint.closing is not None
    assert rival.closing is not None
    assert joint.closing < 5
    assert rival.closing > 100


def test_the_experiment_on_five_photographs(photographs: tuple[Path, ...]) -> None:
    pytest.importorskip("matplotlib")
    heard: list[str] = []
    outcome = experiment.run(experiment.QUICK, photographs[0].parents[2], say=heard.append)
    found = outcome.results["methods"]
    assert [overlap[:2] for overlap in outcome.results["overlaps"]] == [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert all(method["median"] < 4 for method in found.values())  # the reference itself is good to a few px
    assert all(method["closing"] is None for method in found.values())
    assert not outcome.results["closes"]
    assert len(heard) == 7
    assert experiment.JOINT in outcome.markdown()


def test_pairwise_error() -> None:
    scene = ring(m=3, closed=False)
    true = scene.homography(0, 1)
    assert experiment.pairwise_error(true, 5.0 * true, SIZE, SIZE) < 1e-9
    with pytest.raises(ValueError, match="do not overlap"):
        experiment.pairwise_error(true, np.diag([1e6, 1.0, 1.0]) + np.outer([1, 0, 0], [0, 0, 1e9]), SIZE, SIZE)


# -- what all trimmed estimators share --------------------------------------------------------------------------------


def test_the_table_says_of_every_match_which_pair_it_is_of_and_how_unlikely() -> None:
    panorama, scene = fitted(), loop()
    table = panorama.outlier_table()
    assert np.array_equal(table.score, np.sort(panorama.outlier_scores_)[::-1])
    assert np.array_equal(table.outlier, ~panorama.inlier_mask_[table.row])
    right = scene.right[table.row]
    assert np.quantile(table.p_value[right], [0.1, 0.5, 0.9]) == pytest.approx([0.1, 0.5, 0.9], abs=0.05)
    assert set(table.kind) == {"regular", "outlier", "wrong overlap"}
    assert set(table.name[table.kind == "wrong overlap"]) == {"image 0 and image 6"}
    listed = panorama.flag(fdr=0.01)
    assert np.mean(scene.right[listed]) <= 0.02
    assert len(listed) > 0.95 * np.sum(~scene.right)
    again = panorama.outlier_table(panorama.pairs_)  # the training data are recognised
    assert np.array_equal(again.row, table.row)
    assert "probability" in again


def test_matches_of_other_pairs_are_scored_by_the_cameras_found() -> None:
    panorama, scene = fitted(), loop()
    i, j, src, dst = scene.correspondences[0]
    assert np.allclose(panorama.outlier_score([(i, j, src, dst)]), panorama.outlier_scores_[: len(src)], rtol=1e-6)
    assert "probability" not in panorama.outlier_table([(i, j, src, dst)])
    with pytest.raises(ValueError, match="agree on a homography"):
        panorama.outlier_score([(i, j, src[:5], dst[:5])])
    with pytest.raises(ValueError, match="sizes must be those of pairs"):
        panorama.outlier_table(panorama.pairs_, [(9, 9)] * 12)
    with pytest.raises(ValueError, match="must be those fitted to"):
        panorama.outlier_score(make_pairs(scene.correspondences[:1], scene.sizes[:2]))
    with pytest.raises(ValueError, match="sample_weight must be None"):
        panorama.outlier_table(panorama.pairs_, sample_weight=np.ones(len(scene.right)))


@pytest.mark.parametrize("model", ["rotation", "homography"])
def test_rethreshold_goes_on_from_the_cameras_found(model: str) -> None:
    scene = ring(m=4, closed=False)
    panorama = TrimmedPanorama(model=model).fit(scene.correspondences, scene.sizes)
    cold = TrimmedPanorama(0.45, model=model).fit(scene.correspondences, scene.sizes)
    assert panorama.rethreshold(0.45) is panorama
    assert panorama.contamination == "auto"
    assert panorama.contamination_ == pytest.approx(0.45)
    assert np.abs(panorama.raw_weights_ - cold.raw_weights_).sum() <= 4
    assert np.allclose(panorama.outlier_scores_[scene.right], cold.outlier_scores_[scene.right], atol=0.02)
    twin = pickle.loads(pickle.dumps(panorama))
    with pytest.raises(ValueError, match="no training data"):
        twin.rethreshold("auto")
    twin.rethreshold("auto", scene.correspondences)
    assert np.mean(twin.inlier_mask_ == scene.right) > 0.99


def test_verbose_says_what_is_being_done(capsys: pytest.CaptureFixture[str]) -> None:
    scene = ring(m=2, closed=False)
    TrimmedPanorama(verbose=True).fit(scene.correspondences, scene.sizes)
    assert "trimmed fit" in capsys.readouterr().err
