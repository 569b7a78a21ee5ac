"""The parts of a mosaic: surfaces, layouts, warping, exposure, seams, blending, cropping."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from photos import camera, cv2, look, paint, photo
from trimlearn.geometry.mosaic.blend import BLENDERS, Blender
from trimlearn.geometry.mosaic.compose import compose
from trimlearn.geometry.mosaic.crop import largest_rectangle, outline
from trimlearn.geometry.mosaic.exposure import gains
from trimlearn.geometry.mosaic.layout import CanvasLayout, HorizonError, lay_out
from trimlearn.geometry.mosaic.seams import seams
from trimlearn.geometry.mosaic.surfaces import CylinderSurface, PlaneSurface, SphereSurface, Surface, View, Window
from trimlearn.geometry.mosaic.warp import Patch, warp

SIZE, FOCAL = (260, 200), 260.0
SURFACES = (PlaneSurface, CylinderSurface, SphereSurface)


def turned(*angles: tuple[float, float] | float) -> list[View]:
    """Views of cameras turned by (yaw, pitch) degrees."""
    looks = [look(*a) if isinstance(a, tuple) else look(a) for a in angles]
    return [View(camera(FOCAL, SIZE) @ R, SIZE) for R in looks]


def shifted(*corners: tuple[int, int], size: tuple[int, int] = SIZE) -> CanvasLayout:
    """Images of one size on a plane, with these top left corners."""
    views = [View(np.array([[1.0, 0, -x], [0, 1.0, -y], [0, 0, 1]]), size) for x, y in corners]
    return lay_out(PlaneSurface(1.0), views, [f"image {i}" for i in range(len(views))])


def names(views: list[View]) -> list[str]:
    return [f"image {i}" for i in range(len(views))]


@pytest.mark.parametrize("kind", SURFACES)
def test_a_ray_comes_back_to_its_place(kind: type[Surface]) -> None:
    rng = np.random.default_rng(0)
    u, v = rng.uniform(-1.3, 1.3, (2, 50))
    rays = np.stack([np.broadcast_to(a, u.shape) for a in kind(1.0).ray(u, v)], axis=1)
    for found, wanted in zip(kind(1.0).flatten(7.0 * rays), (u, v), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("kind", SURFACES)
def test_a_window_holds_the_image_and_little_more(kind: type[Surface]) -> None:
    surface, (view,) = kind(FOCAL), turned((15, 20))
    window = surface.window(view)
    assert window is not None
    wide = Window(window.x - 60, window.y - 60, window.w + 120, window.h + 120)
    mask = warp(photo(look(15, 20)), view, surface, wide).mask
    seen = outline(mask > 0)
    assert (seen & Window(60, 60, window.w, window.h)) == seen
    assert window.area < 1.04 * seen.area


@pytest.mark.parametrize("kind", SURFACES)
def test_a_warped_image_shows_the_world(kind: type[Surface]) -> None:
    surface, (view,) = kind(FOCAL), turned((10, -12))
    window = surface.window(view)
    assert window is not None
    pixels, mask = warp(photo(look(10, -12)), view, surface, window)
    x, y = np.meshgrid(window.x + np.arange(window.w), window.y + np.arange(window.h))
    rays = np.stack([np.broadcast_to(a, x.shape) for a in surface.ray(x / FOCAL, y / FOCAL)], axis=-1)
    truth = paint(
        np.arctan2(rays[..., 0], rays[..., 2]), np.arctan2(rays[..., 1], np.hypot(rays[..., 0], rays[..., 2]))
    )
    inside = cv2.erode(mask, np.ones((5, 5), np.uint8)) > 0
    assert np.mean(np.abs(pixels.astype(float) - truth)[inside]) < 1.5


def test_an_image_drawn_where_it_is_is_itself() -> None:
    image = photo(look(0))
    layout = shifted((0, 0))
    pixels, mask = warp(image, layout.views[0], layout.surface, layout.windows[0])
    np.testing.assert_array_equal(pixels, image)
    assert mask.all()


def test_an_image_drawn_small_is_averaged_not_sampled() -> None:
    stripes = np.zeros((240, 240, 3), np.uint8)
    stripes[:, ::2] = 200
    view = View(np.diag([4.0, 4.0, 1.0]), (240, 240))
    pixels, mask = warp(stripes, view, PlaneSurface(1.0), Window(0, 0, 60, 60))
    assert np.all(np.abs(pixels[mask > 0].astype(int) - 100) < 8)


def test_transparent_pixels_are_not_in_the_patch() -> None:
    image = np.dstack([photo(look(0)), np.full(SIZE[::-1], 255, np.uint8)])
    image[50:80, 100:150, 3] = 0
    layout = shifted((0, 0))
    mask = warp(image, layout.views[0], layout.surface, layout.windows[0]).mask
    np.testing.assert_array_equal(mask, image[:, :, 3])


def test_what_lies_under_transparency_does_not_shine_through() -> None:
    scene = np.full((200, 400, 3), 150, np.uint8)
    one = np.dstack([scene[:, :260], np.full((200, 260), 255, np.uint8)])
    one[:, :90, :3], one[:, :90, 3] = 0, 0
    layout = shifted((0, 0), (140, 0))
    for blend in BLENDERS.values():
        picture, mask = compose(layout, [one, scene[:, 140:]], blend)
        assert not mask[:, :90].any() and mask[:, 90:].all()
        assert np.all(picture[mask > 0] == 150)


def test_a_circle_is_cut_in_its_widest_gap() -> None:
    views = turned(100, 140, 180, -140)  # they look across ±180°
    layout = lay_out(CylinderSurface(FOCAL), views, names(views))
    assert layout.period is None
    field = np.degrees(2 * np.arctan(SIZE[0] / 2 / FOCAL))
    assert layout.canvas.w / FOCAL == pytest.approx(np.radians(120 + field), abs=0.02)
    assert sorted(w.x for w in layout.windows) == [w.x for w in layout.windows]


def test_a_closed_circle_is_one_turn_wide() -> None:
    views = turned(*range(0, 360, 40))
    layout = lay_out(CylinderSurface(FOCAL), views, names(views))
    assert layout.canvas.w == layout.period == round(2 * np.pi * FOCAL)
    half = layout.scaled(0.37)
    assert half.canvas.w == half.period == round(2 * np.pi * half.surface.scale)


def test_an_image_of_the_zenith_goes_all_the_way_around() -> None:
    views = turned((0, 85))
    layout = lay_out(SphereSurface(FOCAL), views, names(views))
    assert layout.period == layout.canvas.w
    _, mask = compose(layout, [photo(look(0, 85))], BLENDERS["none"])
    assert mask[1].all()  # next to the pole


@pytest.mark.parametrize(
    ("kind", "angle"), [(PlaneSurface, (70.0, 0.0)), (PlaneSurface, (95.0, 0.0)), (CylinderSurface, (0.0, 80.0))]
)
def test_the_horizon_is_an_error_not_a_gigapixel(kind: type[Surface], angle: tuple[float, float]) -> None:
    views = turned(0, angle)
    with pytest.raises(
        HorizonError, match=f"image 1 reaches the horizon of the {kind.name}.*use surface='{kind.instead}'"
    ):
        lay_out(kind(FOCAL), views, names(views))


def test_gains_are_found_in_spite_of_what_moved() -> None:
    scene = photo(look(0), 300.0, (500, 200)).astype(float)
    true = np.array([[1.0, 1.1, 0.9], [0.7, 0.8, 0.8], [1.2, 1.0, 1.3]])
    layout = shifted((0, 0), (100, 0), (200, 0), size=(300, 200))
    patches = []
    for g, window in zip(true, layout.windows, strict=True):
        pixels = np.clip(scene[:, window.x : window.x + 300] / g, 0, 255)
        patches.append(Patch(np.rint(pixels).astype(np.uint8), np.full((200, 300), 255, np.uint8)))
    patches[0].pixels[50:150, 120:200] = 200  # a bus
    found = gains(layout, patches)
    np.testing.assert_allclose(found / found[0], true / true[0], rtol=0.02)
    assert np.all(np.log(found).mean(axis=0) < 0.05)  # nothing is brightened as a whole: image 1, cut off, is darkened


def test_images_that_do_not_overlap_keep_their_exposure() -> None:
    layout = shifted((0, 0), (400, 0))
    patches = [Patch(photo(look(0)), np.full(SIZE[::-1], 255, np.uint8))] * 2
    np.testing.assert_allclose(gains(layout, patches), 1.0)


def test_seams_share_out_the_mosaic_and_go_around_what_moved() -> None:
    scene = photo(look(0), 300.0, (360, 200))
    one, other = scene[:, : SIZE[0]].copy(), scene[:, 100:].copy()
    cv2.circle(one, (170, 100), 30, (255, 255, 255), -1)
    layout = shifted((0, 0), (100, 0))
    mask = np.full(SIZE[::-1], 255, np.uint8)
    left, right = seams(layout, [Patch(one, mask), Patch(other, mask)])
    assert left[:, :98].all() and right[:, -98:].all()  # where there is one image only
    assert np.all((left[:, 100:] > 0) ^ (right[:, :160] > 0))
    ball = np.hypot(*np.meshgrid(np.arange(260) - 170, np.arange(200) - 100)) <= 32
    assert left[ball].all() or not left[ball].any()


@pytest.mark.parametrize("blend", BLENDERS)
def test_images_that_agree_are_not_changed_by_blending(blend: str) -> None:
    scene = photo(look(0), 300.0, (400, 200))
    layout = shifted((0, 0), (140, 0))
    picture, mask = compose(layout, [scene[:, :260], scene[:, 140:]], BLENDERS[blend])
    assert mask.all()
    error = np.abs(picture.astype(int) - scene)
    assert error.max() <= 8 and error.mean() < 0.2  # bands reach over the edge of an image, where it is mirrored
    assert error[:, :100].max() == 0 and error[:, -100:].max() == 0


def test_a_step_of_brightness_is_blended_away_but_not_cut_hard() -> None:
    scene = np.full((200, 400, 3), 100, np.uint8)
    brighter = scene[:, 140:] + np.uint8(30)
    layout = shifted((0, 0), (140, 0))
    steps = {}
    for blend in BLENDERS:
        picture, _ = compose(layout, [scene[:, :260], brighter], BLENDERS[blend], equalise=False)
        steps[blend] = np.abs(np.diff(picture[100, :, 0].astype(int))).max()
    assert steps["none"] == 30
    assert steps["feather"] <= 1
    assert steps["multiband"] <= 6


def test_fine_structure_is_not_doubled_by_bands() -> None:
    """Two images a few pixels off: an average shows both, bands one or the other."""
    rng = np.random.default_rng(1)
    scene = np.repeat(rng.integers(0, 2, (200, 400, 1)).astype(np.uint8) * 200, 3, axis=2)
    other = np.roll(scene, 3, axis=0)
    layout = shifted((0, 0), (100, 0), size=(300, 200))
    grey = {}
    for blend in ("feather", "multiband"):
        picture, _ = compose(layout, [scene[:, :300], other[:, 100:]], BLENDERS[blend], equalise=False)
        inside = picture[10:-10, 110:290, 0]
        grey[blend] = np.mean((inside > 40) & (inside < 160))
    assert grey["feather"] > 0.3
    assert grey["multiband"] < 0.1


@pytest.mark.parametrize("kind", [CylinderSurface, SphereSurface])
@pytest.mark.parametrize("blend", BLENDERS)
def test_the_ends_of_a_circle_fit(kind: type[Surface], blend: str) -> None:
    angles = list(range(0, 360, 40))
    views = turned(*angles)
    layout = lay_out(kind(FOCAL), views, names(views))
    light = 1 + 0.1 * np.sin(np.arange(9))  # no gain can help where the gains are off
    images = [np.clip(photo(look(a)) * g, 0, 255).astype(np.uint8) for a, g in zip(angles, light, strict=True)]
    picture, _ = compose(layout, images, BLENDERS[blend])
    rows = picture[30:-30].astype(float)
    across = np.abs(rows[:, 0] - rows[:, -1]).mean()
    inside = np.abs(np.diff(rows, axis=1)).mean(axis=(0, 2))
    assert across < np.quantile(inside, 0.95) + 1


def test_the_zenith_and_all_around_on_a_sphere() -> None:
    rows = ((40, 0.0), (40, 32.0), (72, 62.0), (360, 88.0))
    angles = [(float(yaw), pitch) for step, pitch in rows for yaw in range(0, 360, step)]
    views = turned(*angles)
    layout = lay_out(SphereSurface(FOCAL), views, names(views))
    picture, mask = compose(layout, [photo(look(*a)) for a in angles], BLENDERS["multiband"])
    canvas, scale = layout.canvas, layout.surface.scale
    x, y = np.meshgrid(canvas.x + np.arange(canvas.w), canvas.y + np.arange(canvas.h))
    truth = paint(x / scale, y / scale)
    assert mask[y < 0].all()  # the whole sky
    assert np.mean(np.abs(picture.astype(float) - truth)[y > -1.3 * scale][:, None]) < 3


def test_a_blender_without_patches_is_black() -> None:
    for kind in BLENDERS.values():
        blender: Blender = kind(Window(5, 7, 64, 48))
        blender.add(
            np.zeros((48, 64, 3), np.uint8), kind.weigh(*[np.zeros((48, 64), np.uint8)] * 2), Window(5, 7, 64, 48)
        )
        picture = blender.result()
        assert picture.shape == (48, 64, 3) and not picture.any()


@given(st.integers(0, 10**6))
def test_the_largest_rectangle_is_the_largest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mask = rng.random((rng.integers(1, 8), rng.integers(1, 8))) < 0.7
    found = largest_rectangle(mask)
    assert mask[found.slices(Window(0, 0, 0, 0))].all()
    h, w = mask.shape
    areas = (
        (b - a) * (d - c)
        for a in range(h) for b in range(a + 1, h + 1) for c in range(w) for d in range(c + 1, w + 1)
        if mask[a:b, c:d].all()
    )  # fmt: skip
    assert found.area == max(areas, default=0)


def test_a_large_mask_is_looked_at_in_cells_and_never_overstepped() -> None:
    x, y = np.meshgrid(np.linspace(-1, 1, 3001), np.linspace(-1, 1, 2000))
    mask = np.hypot(x, y) <= 1
    found = largest_rectangle(mask)
    assert mask[found.slices(Window(0, 0, 0, 0))].all()
    assert found.area > 0.98 * (2 / np.pi) * mask.sum()  # of an ellipse
