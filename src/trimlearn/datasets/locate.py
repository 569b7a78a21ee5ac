"""Where data that is not bundled lies: ``data_home``, ``$TRIMLEARN_DATA``, the user's cache."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "TRIMLEARN_DATA"


def user_cache() -> Path:
    """The user's cache: ``$XDG_CACHE_HOME/trimlearn``, by default ``~/.cache/trimlearn``.

    >>> user_cache().name
    'trimlearn'
    """
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "trimlearn"


def _homes(data_home: str | os.PathLike[str] | None) -> list[Path]:
    """The data folders in the order in which they are looked at."""
    homes = [] if data_home is None else [Path(data_home)]
    if os.environ.get(VARIABLE):
        homes.append(Path(os.environ[VARIABLE]))
    return [*homes, user_cache()]


def find_folder(name: str, data_home: str | os.PathLike[str] | None = None, *, holding: str = "*") -> Path | None:
    """The first folder ``name`` that has a file like ``holding`` in it, or None.

    >>> find_folder("no such data") is None
    True
    """
    for home in _homes(data_home):
        folder = home / name
        if folder.is_dir() and any(folder.glob(holding)):
            return folder
    return None


def missing(
    what: str, name: str, data_home: str | os.PathLike[str] | None, *, fetched: str | None = None
) -> FileNotFoundError:
    """The one error for data that is nowhere: every place looked at, and how to get the data there.

    ``fetched`` says why a download did not help; None where there is none to try.
    """
    places = [f"data_home (--data): {'not given' if data_home is None else Path(data_home) / name}"]
    variable = os.environ.get(VARIABLE)
    places.append(f"${VARIABLE}: {Path(variable) / name if variable else 'not set'}")
    places.append(f"the user's cache: {user_cache() / name}")
    if fetched is not None:
        places.append(f"OpenML: {fetched}")
    return FileNotFoundError(
        f"{what} was not found; looked in {'; '.join(places)}. "
        f"Put its files into one of these folders, or name the folder that holds {name}/ "
        f"with data_home, --data or ${VARIABLE}."
    )
