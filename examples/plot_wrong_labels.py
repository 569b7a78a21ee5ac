"""
Wrong labels among digits
=========================

A fifth of the labels of scikit-learn's digits is made wrong. Nobody tells the model how many, or which.
"""

import matplotlib.pyplot as plt
import numpy as np

from trimlearn import TrimmedLogisticRegression
from trimlearn.datasets import load_digits_contaminated

digits = load_digits_contaminated(fraction=0.2)
model = TrimmedLogisticRegression(random_state=0).fit(digits.X, digits.y)
print(f"{model.contamination_:.0%} of the labels are wrong, it says.")
