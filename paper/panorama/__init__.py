"""Several homographies at once, the paper's future work."""

from paper.panorama.experiment import FULL, QUICK, Settings, run

__all__ = ["FULL", "QUICK", "Settings", "run"]
