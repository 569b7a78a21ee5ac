"""Solvers of the inner problem of alternating minimisation: min over x of F(w, x) at fixed w.

Every solver returns x and what may be left to gain; infinity where it stopped for want of passes, NaN where its
iterations were too few to tell.
"""

from trimlearn.smart.inner.first_order import fista, lbfgs
from trimlearn.smart.inner.newton import newton, newton_decrease

__all__ = ["fista", "lbfgs", "newton", "newton_decrease"]
