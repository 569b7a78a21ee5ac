"""The parts of a homography fit: minimal samples, transfer errors, scores, chance, noise, Gauss–Newton."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from math import comb, log, pi

import numpy as np
import pytest

from trimlearn.geometry.homography.a_contrario import Chance, no_strip_holds
from trimlearn.geometry.homography.dlt import PairMoments
from trimlearn.geometry.homography.four_point import four_point
from trimlearn.geometry.homography.noise import MatchNoise, noise_of
from trimlearn.geometry.homography.points import PointPairs, check_pairs, sort_pairs
from trimlearn.geometry.homography.refine import SETTLED, _cells, _misses, _secant, _shares, _step, _weights, refined
from trimlearn.geometry.homography.score import NARROW, WIDE, MarginalScore, TrimmedScore
from trimlearn.geometry.homography.search import FIRST, REPEATED, SHARP, SampleSearch, samples_needed
from trimlearn.geometry.homography.synthetic import corner_error, random_homography, random_scene
from trimlearn.geometry.homography.transfer import adjugate, one_way_errors, squared_errors, squared_transfer, transform
from trimlearn.geometry.homography.trimmed import four_best

SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
ONE = np.arange(4)[None]


def dlt(pairs: PointPairs, w: np.ndarray) -> np.ndarray:
    """The H (pixels) with the smallest Σ wᵢ‖Aᵢh‖², ‖h‖ = 1."""
    return pairs.to_pixels(PairMoments(pairs.normalised).minimiser(w))


def by_linear_system(src: np.ndarray, dst: np.ndarray) -> np.ndarray:
    """The textbook: eight equations for H with H[2, 2] = 1."""
    A, b = [], []
    for (x, y), (u, v) in zip(src, dst, strict=True):
        A += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        b += [u, v]
    return np.append(np.linalg.solve(A, b), 1.0).reshape(3, 3)


# -- four matches -----------------------------------------------------------------------------------------------------


def test_the_closed_form_solves_the_linear_system() -> None:
    rng = np.random.default_rng(0)
    compared = 0
    for _ in range(200):
        src, dst = rng.uniform(-1, 1, (2, 4, 2))
        for H in four_point(PointPairs(src, dst), ONE):
            np.testing.assert_allclose(H / H[2, 2], by_linear_system(src, dst), rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(np.linalg.norm(H), 1.0)
            depth = (H @ np.column_stack([src, np.ones(4)]).T)[2]
            assert np.all(depth > 0) or np.all(depth < 0)  # all in front of the camera
            compared += 1
    assert 10 < compared < 50  # about one random sample in seven keeps its orientation


def test_a_batch_is_its_samples_one_by_one() -> None:
    rng = np.random.default_rng(1)
    pairs = PointPairs(*rng.uniform(-1, 1, (2, 30, 2)))
    samples = np.array([rng.permutation(30)[:4] for _ in range(300)])
    single = np.concatenate([four_point(pairs, sample[None]) for sample in samples])
    np.testing.assert_allclose(four_point(pairs, samples), single, rtol=1e-12)
    assert len(four_point(pairs, samples[:0])) == 0


def test_true_samples_are_never_left_out_for_their_orientation() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        scene = random_scene(rng, 4, contamination=0.0, noise=0.0)
        found = four_point(PointPairs(scene.src, scene.dst).normalised, ONE, 1e-4)
        assert len(found) == 1 or _thinnest(scene.src) < 1e-3 or _thinnest(scene.dst) < 1e-3


def _thinnest(p: np.ndarray) -> float:
    areas = [abs(np.linalg.det(np.column_stack([p[list(three)], np.ones(3)]))) for three in combinations(range(4), 3)]
    return min(areas) / max(areas)


@pytest.mark.parametrize(
    ("dst", "fits"),
    [
        (SQUARE * [3.0, 2.0] + 1.0, True),
        (SQUARE * [-1.0, 1.0], True),  # a mirror image
        (SQUARE[[0, 1, 3, 2]], False),  # a bow tie: the horizon runs between the points
        (np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.001], [0.0, 1.0]]), False),  # three on a line
        (np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), False),  # a point twice
        (np.array([[0.0, 0.0], [1.0, 0.0], [0.3, 0.3], [0.0, 1.0]]), False),  # one inside the others: not convex
    ],
)
def test_hopeless_samples_are_left_out(dst: np.ndarray, fits: bool) -> None:
    assert len(four_point(PointPairs(SQUARE, dst), ONE)) == fits


# -- transfer ---------------------------------------------------------------------------------------------------------


def test_the_adjugate_inverts() -> None:
    H = np.random.default_rng(0).standard_normal((5, 3, 3))
    np.testing.assert_allclose(adjugate(H) @ H, np.linalg.det(H)[:, None, None] * np.eye(3), atol=1e-12)


def test_transfer_errors_are_those_of_the_formula() -> None:
    rng = np.random.default_rng(0)
    src, dst = rng.uniform(0, 100, (2, 7, 2))
    H = np.stack([random_homography(rng) for _ in range(3)])
    e2 = squared_transfer(H, PointPairs(src, dst))
    assert e2.shape == (3, 7)
    for h, row in zip(H, e2, strict=True):
        there, back = transform(h, src) - dst, transform(np.linalg.inv(h), dst) - src
        np.testing.assert_allclose(row, (there**2).sum(1) + (back**2).sum(1), rtol=1e-9)


def test_a_point_without_an_image_is_infinitely_far() -> None:
    H = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])  # x = 0 has no image; H is singular too
    assert squared_transfer(H, PointPairs(np.zeros((1, 2)), np.ones((1, 2)))).tolist() == [np.inf]


def test_errors_are_scaled_by_what_noise_does_there() -> None:
    """rᵀM⁻¹r, with J by differences; both ways of looking at a match agree to first order."""
    scene = random_scene(np.random.default_rng(0), 40, contamination=0.0, noise=0.01)
    pairs, back = PointPairs(scene.src, scene.dst), np.linalg.inv(scene.H)
    e2 = squared_errors(scene.H, pairs)
    there, other = _scaled_by_hand(scene.H, scene.src, scene.dst), _scaled_by_hand(back, scene.dst, scene.src)
    np.testing.assert_allclose(e2, there + other, rtol=1e-5)
    np.testing.assert_allclose(there, other, rtol=1e-2)
    np.testing.assert_allclose(squared_errors(back, PointPairs(scene.dst, scene.src)), e2, rtol=1e-9)


def _scaled_by_hand(H: np.ndarray, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
    r = dst - transform(H, src)
    return np.asarray(np.einsum("ni,nij,nj->n", r, _inverse_of_m(H, src), r))


@pytest.mark.parametrize("zoom", [0.1, 1.0, 7.0])
def test_errors_are_in_pixels_of_the_coarser_image(zoom: float) -> None:
    src = np.random.default_rng(0).uniform(0, 500, (9, 2))
    miss = np.array([0.3, -0.4])
    e = np.sqrt(squared_errors(np.diag([zoom, zoom, 1.0]), PointPairs(src, zoom * src + miss)))
    np.testing.assert_allclose(e, 2**0.5 * 0.5 / max(zoom, 1.0))
    many = PointPairs(np.tile(src, (3000, 1)), np.tile(zoom * src + miss, (3000, 1)))  # more than one piece
    np.testing.assert_allclose(np.sqrt(squared_errors(np.diag([zoom, zoom, 1.0]), many)), e[0])


def test_how_errors_move() -> None:
    """Slope and curvature of e²/2 with M as it is, by differences: the way there, and the way back in terms of x⁻¹."""
    scene = random_scene(np.random.default_rng(3), 20, contamination=0.0)
    pairs = PointPairs(scene.src, scene.dst)
    x, step = pairs.to_normalised(scene.H), 1e-6
    at = _misses(x, pairs)
    np.testing.assert_allclose(at.e2, squared_errors(scene.H, pairs), rtol=1e-9)
    back = np.linalg.inv(x)
    np.testing.assert_allclose(at.back, back)
    points, frames, H = pairs.normalised.both, pairs.frames, (scene.H, np.linalg.inv(scene.H))
    for k, (X, own) in enumerate(((x, pairs.src), (back, pairs.dst))):
        N = _inverse_of_m(H[k], own) / frames[1 - k][0, 0] ** 2
        r = _missed(X, points[k], points[1 - k])
        moves = step * np.eye(9).reshape(9, 3, 3)
        up, down = (np.stack([_missed(Y, points[k], points[1 - k]) for Y in (X + way * moves)]) for way in (1, -1))
        D = (up - down) / (2 * step)
        slope = np.einsum("inp,npq,nq->in", D, N, r)
        found = np.einsum("in,jn->ijn", at.slope[k], points[k]).reshape(9, -1)
        np.testing.assert_allclose(found, slope, rtol=1e-4, atol=1e-5 * np.abs(slope).max())
        if k == 0:  # that of the way back is the same to first order
            curvature = np.einsum("inp,npq,jnq->ijn", D, N, D)
            six = at.curvature[[0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(3, 3, -1)
            found = np.einsum("ijn,kn,ln->ikjln", six, points[0], points[0]).reshape(9, 9, -1)
            np.testing.assert_allclose(found, curvature, rtol=1e-3, atol=1e-5 * np.abs(curvature).max())


def test_the_scaled_miss_has_the_length_of_its_error() -> None:
    scene = random_scene(np.random.default_rng(4), 30, contamination=0.0)
    pairs = PointPairs(scene.src, scene.dst)
    r = _misses(pairs.to_normalised(scene.H), pairs).r
    np.testing.assert_allclose((r**2).sum(axis=0), _scaled_by_hand(scene.H, scene.src, scene.dst), rtol=1e-5)
    np.testing.assert_allclose(one_way_errors(scene.H, pairs), 2 * (r**2).sum(axis=0), rtol=1e-9)


def test_a_secant_ends_where_the_steps_lead() -> None:
    """Steps that halve along a line end at once; steps that hardly shrink lead no more than once as far again."""
    end, way = np.full((3, 3), 1 / 3), 1e-5 * np.arange(9).reshape(3, 3)
    (first, step), (x, later) = ((end + way, -0.5 * way), (end + 0.5 * way, -0.25 * way))
    np.testing.assert_allclose(x + _secant(x, later, first, step), end, atol=1e-18)
    slow = _secant(end, -0.99 * way, end + way, -way)
    np.testing.assert_allclose(slow, -(0.99 + 0.99) * way, atol=1e-18)
    np.testing.assert_allclose(_secant(x, later, first, later), later)  # 0/0


def test_how_weights_fall() -> None:
    noise, e2 = MatchNoise(1.3, 50.0), np.linspace(0.0, 60.0, 200)
    (w, fall), step = _weights(e2, noise, None), 1e-6
    assert w[0] == 1.0 and w[-1] == 0.0 and np.all(np.diff(w) <= 0)
    up, down = (_weights(e2 + way * step, noise, None)[0] for way in (1, -1))
    np.testing.assert_allclose(fall, (up - down) / (2 * step), atol=1e-8)


@pytest.mark.parametrize("contamination", [0.0, 0.5])
def test_newton_s_steps_need_few_and_end_where_those_of_gauss_do(contamination: float) -> None:
    scene = random_scene(np.random.default_rng(6), 400, contamination)
    pairs, noise = PointPairs(scene.src, scene.dst), MatchNoise(1.0)
    points, ends, sizes = pairs.normalised.both, [], []
    squares = np.array([points[0, i] * points[0, j] for i in range(3) for j in range(i, 3)]).T
    for newton in (0.0, 1.0):
        x, size = pairs.to_normalised(scene.H), [1.0]
        while size[-1] > SETTLED:
            at = _misses(x, pairs)
            w, fall = _weights(at.e2, noise, None)
            step = _step(x, at, w, newton * fall, points, squares)
            x, size = (x + step) / np.linalg.norm(x + step), [*size, float(np.abs(step).max())]
        ends.append(x)
        sizes.append(size)
    np.testing.assert_allclose(*ends, atol=10 * SETTLED)
    assert len(sizes[1]) <= 6 and len(sizes[0]) >= len(sizes[1]) + 2


def test_leverages_are_those_of_the_rows() -> None:
    scene = random_scene(np.random.default_rng(5), 40, contamination=0.0)
    points, w = PointPairs(scene.src, scene.dst).normalised, np.linspace(0, 1, 40)
    a, (u, v) = points.both[0].T, points.dst.T
    none = np.zeros_like(a)
    rows = np.stack([np.hstack([a, none, -u[:, None] * a]), np.hstack([none, a, -v[:, None] * a])], axis=1)
    values, vectors = np.linalg.eigh(np.einsum("n,nki,nkj->ij", w, rows, rows))
    C = vectors[:, 1:] / values[1:] @ vectors[:, 1:].T
    expected = 0.5 * np.einsum("nki,ij,nkj->n", rows, C, rows)
    np.testing.assert_allclose(PairMoments(points).leverages(w), expected, rtol=1e-9)
    assert w @ expected == pytest.approx(4.0)  # eight parameters, two rows each
    line = PointPairs(points.src * [1.0, 0.0], points.dst)
    assert np.all(np.isinf(PairMoments(line).leverages(w)))


def _missed(X: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """π(X a) − b for points (3, n): (n, 2)."""
    return transform(X, a[:2].T) - b[:2].T


def _inverse_of_m(H: np.ndarray, points: np.ndarray) -> np.ndarray:
    J = np.moveaxis(_slopes(H, points), 2, 0)
    zoom = np.abs(np.linalg.det(J))[:, None, None]
    return np.asarray(np.linalg.inv(0.5 * np.maximum(1.0, zoom) * (np.eye(2) + J @ J.swapaxes(1, 2) / zoom)))


def _slopes(H: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The derivative of π(H ·) at points, (2, 2, n), by differences."""
    columns = [(transform(H, points + d) - transform(H, points - d)).T / 2e-3 for d in 1e-3 * np.eye(2)]
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("off", [0, 8, 20, 40])
def test_what_no_strip_is_said_to_hold_none_holds(off: int) -> None:
    rng = np.random.default_rng(off)
    for _ in range(20):
        turn, width = rng.uniform(0, np.pi), rng.uniform(0.5, 3.0)
        points = np.column_stack([rng.uniform(0, 1000, 40), rng.uniform(-width, width, 40)])
        points[:off, 1] = rng.uniform(-500, 500, off)
        points = points @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
        assert not no_strip_holds(40 - off - 1, points.T, width)  # as so many and one more are in one
    assert no_strip_holds(20, points.T, width) == (off == 40)


def test_neighbours_that_err_together_count_together() -> None:
    rng = np.random.default_rng(0)
    points, w = rng.uniform(-1, 1, (2000, 2)), np.ones(2000)
    points[:1000] = 0.1 * points[:1000] - 0.5  # half of the matches in one corner
    alone = rng.standard_normal((2, 2000))
    cells = _cells(points.T, w > 0)
    assert _shares(cells, alone, w).min() > 0.7
    shares = _shares(cells, alone + np.stack([np.sin(4 * points[:, 0]), np.cos(4 * points[:, 1])]), w)
    assert shares[:1000].sum() < 0.2 * shares[1000:].sum()
    assert np.all((shares > 0) & (shares <= 1))


# -- points -----------------------------------------------------------------------------------------------------------


def test_normalised_points_are_centred_whatever_a_few_wild_ones_do() -> None:
    rng = np.random.default_rng(0)
    src, dst = rng.uniform(0, 1000, (2, 101, 2))
    src[:5] = 1e8
    pairs = PointPairs(src, dst)
    for points in (pairs.normalised.src, pairs.normalised.dst):
        np.testing.assert_allclose(np.median(points, axis=0), 0.0, atol=0.02)
        np.testing.assert_allclose(np.median(np.linalg.norm(points, axis=1)), 2**0.5, rtol=0.02)
    H = random_homography(rng)
    back = pairs.to_pixels(pairs.to_normalised(H))
    np.testing.assert_allclose(back / back[2, 2], H, rtol=1e-6, atol=1e-9)


def test_copies_of_a_match_share_one_cell() -> None:
    rng = np.random.default_rng(0)
    src, dst = rng.uniform(0, 1000, (2, 50, 2))
    near = rng.uniform(0.0, 1e-3, (30, 2))
    pairs = PointPairs(np.vstack([src, src[:1] + near]), np.vstack([dst, dst[:1] + near]))
    assert pairs.cell_shares[[0, *range(50, 80)]].sum() == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(pairs.cell_shares[1:50], 1.0)


def test_sorting_keeps_the_best_score_and_finds_the_way_back() -> None:
    src = np.array([[2.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.0, 5.0]])
    data = sort_pairs(check_pairs(src, src, [0.1, 0.2, 0.9, 0.4]))
    np.testing.assert_array_equal(data.distinct.src, [[0, 5], [1, 0], [2, 0]])
    np.testing.assert_array_equal(data.distinct.scores, [0.4, 0.2, 0.9])
    np.testing.assert_array_equal(data.unsorted(data.pairs.src[:, 0]), src[:, 0])


# -- scores, chance, noise --------------------------------------------------------------------------------------------


def test_the_marginal_score_counts_inliers_over_all_thresholds() -> None:
    rng = np.random.default_rng(0)
    e, s = rng.uniform(0, 40, 200), rng.uniform(0.2, 1, 200)
    t = np.geomspace(NARROW * 1000, WIDE * 1000, 200_001)
    order = np.argsort(e)
    counts = np.append(0.0, np.cumsum(s[order]))[np.searchsorted(e[order], t)]
    expected = counts.mean() * 2 * log(WIDE / NARROW)
    assert MarginalScore(1000.0).scores(e**2, s) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("s", [np.ones(20), np.linspace(0.3, 0.9, 20)])
def test_the_quota_is_a_trimmed_mean(s: np.ndarray) -> None:
    e2 = np.random.default_rng(0).uniform(0, 100, (3, 20))
    trimmed = TrimmedScore(1000.0, share=0.5)
    for row, score in zip(e2, trimmed.scores(e2, s), strict=True):
        order = np.argsort(row)
        kept = np.clip(0.5 * s.sum() - np.append(0.0, np.cumsum(s[order])[:-1]), 0.0, s[order])
        assert -score == pytest.approx(kept @ row[order] / kept.sum(), rel=1e-9)
        assert trimmed.weights(row, s) @ s == pytest.approx(0.5 * s.sum())


def test_the_number_of_false_alarms() -> None:
    rng = np.random.default_rng(0)
    src = rng.uniform(0, 1000, (30, 2))
    chance, e2 = Chance(PointPairs(src, src)), rng.uniform(0, 500, 30) ** 2
    e2[:9] = 4.0
    assert np.all(chance.s == 1.0)
    k, limit, log_nfa = chance.best(e2)
    alpha = pi * 4.0 / chance.area
    assert (k, limit) == (9.0, 4.0)
    assert log_nfa == pytest.approx(log(26 * comb(30, 9) * comb(9, 4)) + 5 * log(alpha))


def test_the_noise_of_the_inliers_is_found_among_random_matches() -> None:
    rng = np.random.default_rng(0)
    src = rng.uniform(0, 1000, (1000, 2))
    chance = Chance(PointPairs(src, src))
    e2 = rng.uniform(0, 1000, 1000) ** 2
    e2[:300] = 1.5**2 * rng.chisquare(2, 300)
    noise = noise_of(e2, chance)
    assert noise.scale == pytest.approx(1.5, rel=0.1)
    assert noise.bad_share(np.sqrt(e2), noise.threshold) == pytest.approx(0.7, abs=0.03)
    assert np.mean(np.sqrt(e2[:300]) <= noise.threshold) == pytest.approx(0.99, abs=0.015)


# -- fits -------------------------------------------------------------------------------------------------------------


def test_the_refinement_reaches_a_fixed_point_as_good_as_dlt_on_the_inliers() -> None:
    errors = []
    for seed in range(10):
        scene = random_scene(np.random.default_rng(seed), 150, contamination=0.3, noise=2.0)
        pairs = PointPairs(scene.src, scene.dst)
        start = dlt(pairs, (scene.good & (np.cumsum(scene.good) <= 15)).astype(float))
        H, _ = refined(start, pairs, Chance(pairs), threshold=None)
        np.testing.assert_allclose(refined(H, pairs, Chance(pairs), threshold=None)[0], H, rtol=1e-5)
        errors.append([corner_error(h, scene.H) for h in (start, H, dlt(pairs, scene.good.astype(float)))])
    before, after, oracle = np.median(errors, axis=0)
    assert after < 0.5 * before
    assert after < 1.2 * oracle


def test_the_four_best_skip_copies_and_lines() -> None:
    src = np.array([[0.0, 0.0], [0.0, 0.0], [100.0, 0.0], [200.0, 0.0], [0.0, 100.0], [100.0, 130.0], [60.0, 40.0]])
    pairs, losses = PointPairs(src, 2 * src), np.array([0.0, 0.0, 0.1, 0.2, 0.3, 0.4, 9.0])
    H = four_best(pairs, losses)
    np.testing.assert_allclose(H / H[2, 2], np.diag([2.0, 2.0, 1.0]), atol=1e-9)
    with pytest.raises(ValueError, match="nearly on a line"):
        four_best(pairs[[0, 1, 2, 3, 4]], losses[:5])


@pytest.mark.parametrize(("share", "probability"), [(0.2, 0.9999), (0.5, 0.99), (0.9, 0.5), (1.0, 0.9999)])
def test_the_number_of_samples(share: float, probability: float) -> None:
    count = samples_needed(share, probability)
    missed = [(1 - share**4) ** k for k in (count - 1, count)]
    assert missed[1] <= (1 - probability) * (1 + 1e-9)
    assert count == 1 or missed[0] > 1 - probability


def test_clean_matches_need_few_samples_and_good_scores_save_many() -> None:
    scene = random_scene(np.random.default_rng(0), 500, contamination=0.85)
    pairs = PointPairs(scene.src, scene.dst)

    def drawn(pairs: PointPairs, scores: np.ndarray | None) -> int:
        pairs = replace(pairs, scores=scores)
        chance = Chance(pairs)
        search = SampleSearch(pairs, MarginalScore(chance.side), chance, seed=0)
        assert search.run(250_000, 0.9999) is not None
        return search.drawn

    clean, perfect, hints, nothing = (
        drawn(pairs[scene.good], None),
        drawn(pairs, scene.good.astype(float)),
        drawn(pairs, scene.scores),
        drawn(pairs, None),
    )
    assert all(fewer <= more for fewer, more in pairwise((clean, perfect, hints, nothing)))
    assert clean == FIRST and perfect <= 4 * FIRST
    assert hints < nothing


def test_the_noise_goes_on_from_where_it_was_and_ends_where_it_would_have() -> None:
    rng = np.random.default_rng(1)
    src = rng.uniform(0, 1000, (400, 2))
    chance = Chance(PointPairs(src, src))
    e2 = rng.uniform(0, 40, 400) ** 2
    e2[:250] = 1.5**2 * rng.chisquare(2, 250)
    fresh = noise_of(e2, chance)
    again = noise_of(e2, chance, fresh)
    assert 0.5 < fresh.share < 0.99
    assert again.scale == pytest.approx(fresh.scale, rel=1e-3)
    assert again.share == pytest.approx(fresh.share, rel=1e-3)


@pytest.mark.parametrize("e", [5.0, 500.0])
def test_a_noise_that_no_error_agrees_with_is_no_end(e: float) -> None:
    """All errors beyond what was taken for noise, or beyond all that could be."""
    src = np.random.default_rng(0).uniform(0, 1000, (50, 2))
    noise = noise_of(np.full(50, e**2), Chance(PointPairs(src, src)), MatchNoise(0.05, 50.0, 0.9))
    assert 0 < noise.scale < 1000 and 0 < noise.share < 1


def test_matches_far_off_ask_for_no_closer_look_and_those_nearby_do() -> None:
    scene = random_scene(np.random.default_rng(3), 100, contamination=0.5)
    pairs = PointPairs(scene.src, scene.dst)
    chance = Chance(pairs)
    search = SampleSearch(pairs, MarginalScore(chance.side), chance, seed=0)
    best = search.run(250_000, 0.9999)
    assert best is not None and search.drawn == FIRST
    assert search._is_sharp()
    agree, limit = best.e2 <= best.significance.e2, max(best.significance.e2, best.noise.threshold**2)
    spread = search._moments.leverages(np.where(agree, chance.s, 0.0))
    worst = int(np.argmax(spread))
    assert spread[worst] > SHARP and not agree[worst]
    search.best = replace(best, e2=np.where(np.arange(100) == worst, 1.2 * limit, best.e2))
    assert not search._is_sharp()  # H is as open there as before, and the match may belong to the others


def test_few_inliers_are_searched_for_ten_times_as_long() -> None:
    """A wrong homography may have as many, and many starts that lead to it: the seed would decide."""
    for count, factor in ((14, REPEATED), (20, 1)):
        scene = random_scene(np.random.default_rng(5), 4 * count, contamination=0.75, noise=0.3)
        pairs = PointPairs(scene.src, scene.dst)
        chance = Chance(pairs)
        search = SampleSearch(pairs, MarginalScore(chance.side), chance, seed=0)
        assert search.run(250_000, 0.9999) is not None
        needed = factor * samples_needed(0.25, 0.9999)
        assert needed <= search.drawn < 8 * needed
