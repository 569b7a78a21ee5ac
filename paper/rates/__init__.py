"""How fast the methods are: Figure 2 (section 4.1) and Table 1 (section 3)."""

from paper.rates.experiment import FULL, QUICK, Settings, run

__all__ = ["FULL", "QUICK", "Settings", "run"]
