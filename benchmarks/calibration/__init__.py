"""Where constants come from: each file measures a family of them, and its table lies in results/."""
