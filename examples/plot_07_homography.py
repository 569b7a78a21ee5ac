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

scene = random_scene(np.random.default_rng(1), n=600, contamination=0.7)
model = TrimmedHomography().fit(scene.src, scene.dst)
kept = model.inlier_mask_
print(f"{model.contamination_:.0%} of the matches are wrong, beyond {model.threshold_:.1f} pixels")
print(f"kept {np.sum(kept & scene.good)} of {scene.good.sum()} good matches,")
print(f"and {np.sum(kept & ~scene.good)} wrong ones")
print(f"the corners are off by {corner_error(model.homography_, scene.H):.2f} pixels in the mean")

# %%
# Each line leads from a point of the first image to where it is said to be in the second.

figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharex=True, sharey=True)
for ax, rows, color, title in (
    (panels[0], np.ones_like(kept), "#7f8c8d", "all matches"),
    (panels[1], kept, "#2c6fbb", "those that one map explains"),
):
    ends = np.stack([scene.src[rows], scene.dst[rows]], axis=1)
    for (x0, y0), (x1, y1) in ends:
        ax.plot([x0, x1], [y0, y1], color=color, linewidth=0.6)
    ax.scatter(*scene.src[rows].T, s=6, color=color)
    ax.set(title=f"{title}: {rows.sum()}", aspect="equal")
