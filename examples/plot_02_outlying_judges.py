"""
Judges who are judged differently
=================================

Lawyers rated 43 judges of the US Superior Court on twelve qualities (New Haven Register, 14
January 1977). Two principal components explain nearly all judges; some are not explained, and
the outlier map shows who, and how.
"""

import matplotlib.pyplot as plt
import pandas as pd

from trimlearn import TrimmedPCA
from trimlearn.datasets import load_judges
from trimlearn.plots import plot_biplot, plot_outlier_map

judges = load_judges()
ratings = pd.DataFrame(judges.data, columns=judges.feature_names, index=judges.names)
model = TrimmedPCA(n_components=2, random_state=0).fit(ratings)

# %%
# Up: far from the plane of the two components. To the right: far out within it. Up and to the
# right is bad leverage, rows that would turn the components of a plain PCA; far right alone is
# good leverage.

figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
plot_outlier_map(model, ax=ax)

# %%
# The same in words, worst first, with the ratings that say so:

columns = ["name", "kind", "score", "probability", "features"]
model.outlier_table().to_pandas()[columns].head(6).round(2)

# %%
# And where the judges lie along the two components, with the ratings as arrows:

figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
plot_biplot(model, ax=ax)
