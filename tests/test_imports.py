"""What importing trimlearn does not import."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
heavy = {"torch", "dask", "cv2", "matplotlib"}
import trimlearn.losses
assert not (heavy | {"pandas"}) & set(sys.modules)
import trimlearn.geometry.mosaic.stitch  # scikit-learn, which the estimators need, imports pandas where it is
assert not heavy & set(sys.modules)
"""


def test_nothing_heavy_is_imported_before_it_is_used() -> None:
    """In a process of its own: here others have imported it."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
