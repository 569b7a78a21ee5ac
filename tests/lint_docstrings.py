"""The docstrings of all public names by numpydoc's rules. As a script (``make lint``) it prints what breaks them:

python tests/lint_docstrings.py
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from enum import EnumMeta
from importlib import import_module
from typing import Any

__all__ = ["CHECKS", "PACKAGES", "errors", "public_names"]

PACKAGES = (
    "trimlearn",
    *(f"trimlearn.{name}" for name in ("losses", "weights", "regularizers", "smart")),
    *(f"trimlearn.{name}" for name in ("estimators", "geometry", "datasets", "plots", "tables", "streams", "torch")),
)

# Not asked for: a See Also section (SA), an extended summary (ES01), a capital letter at the start (SS02, PR08, RT04:
# a formula may come first), an infinitive (SS05: most names are things), closing quotes on a line of their own (GL02).
CHECKS = {
    "GL03": "no two blank lines in a row",
    "GL05": "no tabs",
    "GL06": "sections have numpydoc's names",
    "GL07": "sections come in numpydoc's order",
    "GL08": "there is a docstring",
    "SS01": "it begins with a summary",
    "SS03": "which ends with a period",
    "SS04": "and is not indented",
    "SS06": "and fits on one line",
    "PR01": "every parameter is documented",
    "PR02": "none that does not exist is",
    "PR03": "in the order of the signature",
    "PR04": "each with its type",
    "PR07": "and with a description",
    "PR10": "and a space before the colon",
    "RT01": "what is returned is said",
    "RT02": "its type on a line of its own",
    "RT03": "and what it means",
    "YD01": "what is yielded is said",
    "EX01": "there is an example",
}


def public_names() -> Iterator[str]:
    """Where every class and function that a package names in ``__all__`` is defined, each once."""
    found: dict[str, None] = {}
    for package in map(import_module, PACKAGES):
        for thing in (getattr(package, name) for name in package.__all__):
            if callable(thing):
                found[f"{thing.__module__}.{thing.__qualname__}"] = None
    yield from found


def errors(name: str) -> list[str]:
    """What is wrong with the docstring of a name, one line for each rule that is broken."""
    from numpydoc.validate import Validator, validate

    thing = Validator._load_obj(name)
    asked = CHECKS.keys() - ({"PR01"} if isinstance(thing, EnumMeta) else set())  # Enum's own parameters, not ours
    result: dict[str, Any] = validate(name)
    broken = [(code, message) for code, message in result["errors"] if code in asked and not _private(code, message)]
    return [f"{result['file']}:{result['file_line']}: {name}: {code} {message}" for code, message in broken]


def _private(code: str, message: str) -> bool:
    """Whether only private fields of a class are not documented."""
    return code == "PR01" and all(name.startswith("_") for name in re.findall(r"'(\w+)'", message))


def main() -> int:
    """Print all errors; 1 where there are some."""
    found = [line for name in public_names() for line in errors(name)]
    print(*found, f"{len(found)} errors in docstrings" if found else "All docstrings passed!", sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
