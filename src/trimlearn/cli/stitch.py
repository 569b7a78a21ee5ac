"""``trimlearn stitch``: photographs into a mosaic."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimlearn._utils.files import replacing
from trimlearn.checks.options import OptionError
from trimlearn.cli.show import print_table

if TYPE_CHECKING:
    from trimlearn.geometry import Mosaic

# Of the picture: empty borders from which a crop is offered; a hand-held pan of level photographs has less
BORDER = 0.1


def add_to(commands: Any) -> None:
    """Add this command to argparse's sub-parsers."""
    parser = commands.add_parser("stitch", help="join overlapping photographs into a mosaic")
    parser.add_argument("images", nargs="+", type=Path, metavar="IMG", help="two or more photographs, in any order")
    parser.add_argument(
        "--out", type=Path, default="pano.jpg",
        help="the mosaic; its numbers go beside it, as .results.json (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--surface", "--projection", choices=("auto", "plane", "cylinder", "sphere"), default="auto",
        help="what the mosaic is drawn on (default: a plane; a cylinder for a wide view, a sphere for a tall one)",
    )  # fmt: skip
    parser.add_argument(
        "--blend", choices=("multiband", "feather", "none"), default="multiband", help="default: %(default)s"
    )
    parser.add_argument("--crop", action="store_true", help="cut out the largest rectangle that the images fill")
    parser.set_defaults(command=_run)


def _run(arguments: argparse.Namespace) -> None:
    from trimlearn.geometry.mosaic.stitch import stitch_files

    _check(arguments.images, arguments.out)
    mosaic = stitch_files(
        arguments.images, arguments.out,
        surface=arguments.surface, blend=arguments.blend, crop=arguments.crop, progress=True,
    )  # fmt: skip
    numbers = arguments.out.with_suffix(".results.json")
    with replacing(numbers) as temporary:
        temporary.write_text(json.dumps(_results(mosaic, arguments.images), indent=2) + "\n", encoding="utf-8")
    height, width = mosaic.mask.shape
    print_table(
        f"{len(mosaic.used)} of {len(arguments.images)} images on a {mosaic.surface}, {width} × {height} pixels",
        ["image", "image", "matches", "kept"],
        [[*overlap["images"], str(overlap["matches"]), str(overlap["kept"])] for overlap in _overlaps(mosaic)],
    )
    print("Written:", arguments.out, numbers)
    if mosaic.border > BORDER and not arguments.crop:
        print(
            f"{mosaic.border:.0%} of the picture are empty borders; --crop cuts out the largest rectangle without any."
        )


def _check(images: list[Path], out: Path) -> None:
    """Raise where the command line cannot be right, before any photograph is looked at."""
    from trimlearn.geometry.mosaic.mosaic import check_picture_path

    if len(images) < 2:
        raise OptionError(f"IMG must be two photographs or more, got {images[0]} alone")
    for image in images:
        if image.is_dir():
            raise OptionError(f"{image} is a folder and cannot be read as an image: give the photographs in it")
        if image.exists() and not os.access(image, os.R_OK):
            raise OptionError(f"{image} cannot be read: you may not")
        if image.exists() and out.exists() and image.samefile(out):
            raise OptionError(f"--out {out} is one of the photographs: give the mosaic a name of its own")
    try:
        check_picture_path(out)
    except ValueError as error:
        raise OptionError(f"--out {error}") from error


def _overlaps(mosaic: Mosaic) -> list[dict[str, Any]]:
    """Each overlap: its two images, their tentative matches, and how many of these agree on one homography."""
    pairs = mosaic.pairs
    if pairs is None:
        return []
    return [
        {
            "images": [Path(pairs.names[pair.i]).name, Path(pairs.names[pair.j]).name],
            "matches": len(pair.src),
            "kept": int(pair.inliers.sum()),
        }
        for pair in pairs.pairs
    ]


def _results(mosaic: Mosaic, images: list[Path]) -> dict[str, Any]:
    homographies = mosaic.homographies
    return {
        "images": [str(image) for image in images],
        "used": list(mosaic.used),
        "left_out": list(mosaic.left_out),
        "surface": mosaic.surface,
        "full_turn": mosaic.wraps,
        "border": mosaic.border,
        "distortion": [mosaic.distortion[i] for i in mosaic.used],
        "overlaps": _overlaps(mosaic),
        "homographies": None if homographies is None else {str(i): homographies[i].tolist() for i in mosaic.used},
    }
