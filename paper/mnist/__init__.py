"""MNIST with wrong labels (section 4.1): Table 2 and Figure 1."""

from paper.mnist.experiment import FULL, QUICK, Settings, run

__all__ = ["FULL", "QUICK", "Settings", "run"]
