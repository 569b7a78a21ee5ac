"""`python -m paper page --out DIR`: docs/paper.md from the files that `python -m paper all --out DIR` wrote."""

from __future__ import annotations

import re
from pathlib import Path

from PIL import Image

from trimlearn._utils.files import replacing

__all__ = ["HEAD", "write_docs_page"]

DOCS = Path(__file__).parents[1] / "docs"
FOLDER = "img/paper"
LARGE = 400_000  # bytes: a picture of photographs, which a JPEG holds in a tenth of a PNG

HEAD = """# The paper's tables and figures

*Written by `python -m paper page` from the files of the command below; change the experiments, not this page.*

    make paper DATA=DIR

regenerates section 4 and Table 1 of Aravkin and Davis, *A SMART Stochastic Algorithm for Nonconvex Optimization with
Applications to Robust Machine Learning*, on the paper's data, and adds what the paper leaves to future work: it prints
the tables below, and writes every picture as PNG and SVG, the text as paper.md, and all numbers as results.json.
`python -m paper NAME` runs one part: judges, homography, panorama, mnist or rates. `--quick` tries it on a slice of the
data. DIR holds mnist/, vlfeat/ (river, roofs), oxford_affine/ and panorama/; the judges are bundled. SMART finds its
steps by itself (in Table 1 they are the theory's), those of its rivals are found by hand, as said there. LSE is the
untrimmed fit (log-sum-exp), SG the stochastic gradient method. Misprints of the paper that matter here are listed under
[errata](notation.md#errata-that-the-code-follows).
"""


def write_docs_page(out: Path, docs: Path = DOCS) -> Path:
    """The page, with its pictures in docs/img/paper."""
    (docs / FOLDER).mkdir(parents=True, exist_ok=True)
    text = re.sub(r"\]\((\S+\.png)\)", lambda link: f"]({FOLDER}/{_copy(out / link[1], docs / FOLDER)})", _page(out))
    page = docs / "paper.md"
    with replacing(page) as temporary:
        temporary.write_text(f"{HEAD}\n{text}", encoding="utf-8")
    return page


def _page(out: Path) -> str:
    return (out / "paper.md").read_text(encoding="utf-8")


def _copy(picture: Path, folder: Path) -> str:
    """The name under which the picture now lies in the folder."""
    if picture.stat().st_size <= LARGE:
        (folder / picture.name).write_bytes(picture.read_bytes())
        return picture.name
    name = f"{picture.stem}.jpg"
    Image.open(picture).convert("RGB").save(folder / name, quality=85)
    return name
