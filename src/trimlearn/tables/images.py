"""Folders of images with a file of labels, as a table with one row for each image."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.arrays import Floats
from trimlearn._utils.text import plural
from trimlearn.tables.read import read_table
from trimlearn.tables.table import Table, pandas, shown_words

# Of files that OpenCV reads (imread).
ENDINGS = frozenset((".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".gif", ".pgm", ".ppm", ".pnm", ".jp2"))
SIDE = 28  # pixels a side of the small versions, as MNIST has them: 784 columns of grey ones
THUMBNAIL = 96  # pixels a side at most of the pictures on a page
MATCHED = 0.5  # of the cells must be names of images for a column to hold their names
MOST_CLASSES = 255  # different whole numbers that are labels, as for categories; more are quantities
LABEL_WORDS = ("label", "class", "target", "category", "y", "species", "diagnosis")


@final
@dataclass(frozen=True)
class ImageTable:
    """Images and their labels.

    Parameters
    ----------
    table : Table
        One row for each image: its file name (the id) and its label.
    label : str
        The name of the column of labels.
    pixels : ndarray of shape (n, p)
        The small versions of the images, from 0 to 1, row by row; or the features that were given.
    paths : tuple of path
        The files; None where there is none.
    size : tuple of int or None
        Height, width and channels of the small versions; None for features.

    Examples
    --------
    >>> images = read_images("photos", "labels.csv")  # doctest: +SKIP
    >>> images.pixels.shape, images.thumbnails([0])[0][:22]  # doctest: +SKIP
    ((200, 784), 'data:image/png;base64,')
    """

    table: Table
    label: str
    pixels: NDArray[np.floating[Any]]
    paths: tuple[Path | None, ...]
    size: tuple[int, int, int] | None

    def thumbnails(self, rows: Iterable[int]) -> list[str]:
        """Pictures of some rows for a page, made when asked for.

        Parameters
        ----------
        rows : iterable of int
            The rows, from 0.

        Returns
        -------
        list of str
            A ``data:image/png;base64`` address for each; "" where the image cannot be read.
        """
        return [_thumbnail(self.paths[row]) for row in rows]


def read_images(
    folder: str | os.PathLike[str], labels: str | os.PathLike[str], features: str | os.PathLike[str] | None = None
) -> ImageTable:
    """Read a folder of images and the table that labels them.

    Parameters
    ----------
    folder : path
        Where the images are, also in folders within.
    labels : path
        A table (CSV, Excel, …) with a column of file names and a column of labels; both are found by what they hold.
    features : path, optional
        A .npy file with a row of numbers for each row of ``labels``, to judge images by instead of their pixels.

    Returns
    -------
    ImageTable
        The labels, the small versions of the images (or the features), and where the images are.

    Examples
    --------
    >>> read_images("photos", "labels.csv").label  # doctest: +SKIP
    'label'
    """
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise NotADirectoryError(f"{folder} {what}; give the folder with the images.")
    table = read_table(labels)
    found = _files(folder)
    column, paths = _file_column(table, found, folder, Path(labels).name)
    label = _label_column(table, column)
    notes = [*table.notes, *_about_files(table, column, paths, found)]
    if features is None:
        kept, pixels, size, more = _small_versions(paths)
        if not kept:
            raise ValueError(f"{folder}: none of the {len(paths):,} images that {Path(labels).name} names can be read.")
        notes += more
    else:
        kept, pixels, size = list(range(len(paths))), _features(Path(features), len(paths), Path(labels).name), None
    told = _told(labels, table, column, label)
    return ImageTable(
        table=_rows(told, [column, label], kept, folder.name or str(folder), tuple(notes)),
        label=label,
        pixels=pixels,
        paths=tuple(paths[i] for i in kept),
        size=size,
    )


def _files(folder: Path) -> dict[str, Path | None]:
    """Every image below a folder by the names a table may call it; None where two share one."""
    found: dict[str, Path | None] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in ENDINGS and path.is_file():
            inside = path.relative_to(folder).as_posix()
            found[inside] = path
            for name in {path.name, path.stem, inside.removesuffix(path.suffix)} - {inside}:
                found[name] = None if name in found else path
    if not found:
        raise ValueError(f"{folder} holds no images; give a folder with PNG or JPEG files.")
    return found


def _plain(cell: str) -> str:
    return cell.strip().replace("\\", "/").removeprefix("./")


def _file_column(
    table: Table, found: dict[str, Path | None], folder: Path, labels: str
) -> tuple[str, list[Path | None]]:
    """The column whose cells are most often names of images, and the image of each row."""
    best, where, paths = 0, "", []
    for name in table.written:
        cells = [_plain(cell) for cell in table.written[name].tolist()]
        matched = [found.get(cell) or found.get(PurePosixPath(cell).name) for cell in cells]
        matched = [path or _below(folder, cell) for path, cell in zip(matched, cells, strict=True)]
        count = sum(path is not None for path in matched)
        if count > best:
            best, where, paths = count, str(name), matched
    if best < MATCHED * len(table.written):
        example = next(path.name for path in found.values() if path is not None)
        raise ValueError(f"{labels}: no column holds the names of the images in {folder}, such as {example}.")
    return where, paths


def _below(folder: Path, cell: str) -> Path | None:
    """The folder's own name may stand before the file's: photos/a.png."""
    inside = cell.removeprefix(folder.name + "/")
    path = folder / inside if inside != cell else None
    return path if path is not None and path.is_file() else None


def _label_column(table: Table, column: str) -> str:
    others = [c for c in table.columns if c.name != column]
    if not others:
        raise ValueError(f'{table.source}: there is no column of labels beside "{column}".')
    for c in others:
        if c.name.lower() in LABEL_WORDS:
            return c.name
    words = [c for c in others if c.kind == "category"]
    numbers = [c for c in others if c.kind == "number"]
    classes = [c for c in numbers if _are_classes(table.frame[c.name].dropna().to_numpy())]
    return (words or classes or numbers or others)[0].name


def _told(labels: str | os.PathLike[str], table: Table, column: str, label: str) -> Table:
    """The table read again, with whole numbers of a label taken as classes."""
    drop = [c.name for c in table.columns if c.name not in (column, label)]
    values = table.frame[label]
    classes = values.dtype.kind != "f" or _are_classes(values.dropna().to_numpy())
    return read_table(labels, id=column, categorical=[label] if classes else [], drop=drop)


def _are_classes(values: Floats) -> bool:
    different = len(np.unique(values))
    return bool(np.all(values == np.rint(values))) and different <= min(MOST_CLASSES, len(values) / 2)


def _about_files(table: Table, column: str, paths: list[Path | None], found: dict[str, Path | None]) -> list[str]:
    notes = []
    lost = [cell for cell, path in zip(table.written[column].tolist(), paths, strict=True) if path is None]
    if lost:
        are = "is" if len(lost) == 1 else "are"
        notes.append(f"{len(lost):,} of {len(paths):,} images {are} not in the folder: {shown_words(lost)}.")
    without = {path for path in found.values() if path is not None} - set(paths)
    if without:
        images = plural(len(without), "image has no label and was", "images have no label and were")
        notes.append(f"{images} left out.")
    return notes


def _features(path: Path, rows: int, labels: str) -> NDArray[np.floating[Any]]:
    try:
        given = np.load(path, allow_pickle=False)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} does not exist; check the name of the features.") from error
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path.name} cannot be read as a .npy file of numbers; save it by numpy.save.") from error
    if not isinstance(given, np.ndarray) or given.dtype.kind not in "fiub":
        raise ValueError(f"{path.name} must hold one array of numbers.")
    if given.ndim < 2 or len(given) != rows:
        raise ValueError(
            f"{path.name} has shape {given.shape}; there must be one row for each of the {rows:,} rows of {labels}."
        )
    flat = given.reshape(rows, -1)
    return flat if flat.dtype.kind == "f" else flat.astype(np.float64)


def _rows(table: Table, names: list[str], kept: list[int], source: str, notes: tuple[str, ...]) -> Table:
    """Those rows of a table."""
    columns = {column.name: column for column in table.columns}
    frame, written = table.frame[names].iloc[kept], table.written[names].iloc[kept]
    known = [replace(columns[name], missing=int(pandas().isna(frame[name]).sum()), unreadable=()) for name in names]
    frame, written = frame.reset_index(drop=True), written.reset_index(drop=True)
    return replace(table, frame=frame, written=written, columns=tuple(known), source=source, notes=notes)


def _opencv() -> Any:
    try:
        import cv2
    except ImportError as error:
        raise ImportError('images need OpenCV: pip install "trimlearn[vision]".') from error
    return cv2


def _decoded(path: Path | None) -> NDArray[np.uint8] | None:
    """An image as (h, w, 3) BGR, turned upright; None where it cannot be read."""
    cv2 = _opencv()
    if path is None:
        return None
    try:
        raw = np.fromfile(path, np.uint8)
        image = cv2.imdecode(raw, cv2.IMREAD_COLOR) if raw.size else None
    except (OSError, cv2.error):
        return None
    return None if image is None else np.asarray(image, np.uint8)


def _small_versions(
    paths: list[Path | None],
) -> tuple[list[int], NDArray[np.float32], tuple[int, int, int], list[str]]:
    """The rows whose images can be read, their small versions, and notes on the others."""
    cv2 = _opencv()
    kept, small, shapes, unreadable = [], [], set(), []
    for i, path in enumerate(paths):
        image = _decoded(path)
        if image is None:
            unreadable += [path.name] if path is not None else []
            continue
        shapes.add(image.shape)
        kept.append(i)
        fits = max(image.shape[:2]) <= SIDE and len(shapes) == 1
        small.append(image if fits else cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA))
    if len(shapes) > 1:
        small = [image if image.shape[:2] == (SIDE, SIDE) else cv2.resize(image, (SIDE, SIDE)) for image in small]
    notes = []
    if unreadable:
        many = plural(len(unreadable), "image could not be read and was", "images could not be read and were")
        notes.append(f"{many} left out: {', '.join(unreadable[:10])}.")
    if not small:
        return [], np.zeros((0, 0), np.float32), (0, 0, 0), notes
    stack = np.stack(small)
    if np.array_equal(stack[..., 0], stack[..., 1]) and np.array_equal(stack[..., 1], stack[..., 2]):
        stack = stack[..., :1]
    height, width, channels = stack.shape[1:]
    pixels = stack[..., ::-1].reshape(len(stack), -1).astype(np.float32) / np.float32(255)
    return kept, pixels, (height, width, channels), notes


def _thumbnail(path: Path | None) -> str:
    cv2 = _opencv()
    image = _decoded(path)
    if image is None:
        return ""
    scale = THUMBNAIL / max(image.shape[:2])
    if scale < 1:
        size = tuple(max(1, round(side * scale)) for side in image.shape[1::-1])
        image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    done, encoded = cv2.imencode(".png", image)
    return "data:image/png;base64," + base64.b64encode(encoded.tobytes()).decode() if done else ""
