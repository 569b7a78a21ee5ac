"""
The map between two images when most matches are wrong
======================================================

A detector has matched 600 points of two images. Seven of ten matches are random.
`TrimmedHomography` finds the projective map that the others agree on, and the threshold, by
itself.
"""

import matplotlib.pyplot as plt
import numpy as np

from trimlearn.geometry import TrimmedHomography
from trimlearn.geometry.homography.synthetic import corner_error, random_scene
from trimlearn.plots import plot_matches

scene = random_scene(np.random.default_rng(1), n=600, contamination=0.7)
model = TrimmedHomography().fit(scene.src, scene.dst)
kept = model.inlier_mask_
print(f"{model.contamination_:.0%} of the matches are wrong, beyond {model.threshold_:.1f} pixels")
print(f"kept {np.sum(kept & scene.good)} of {scene.good.sum()} good matches,")
print(f"and {np.sum(kept & ~scene.good)} wrong ones")
print(f"the corners are off by {corner_error(model.homography_, scene.H):.2f} pixels in the mean")

# %%
# Lines lead from points of the first image, on the left, to where they are said to be in the second.

figure, ax = plt.subplots(figsize=(10, 4.5), layout="constrained")
plot_matches(model, ax=ax)
