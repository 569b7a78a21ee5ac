"""The kernels that Triton compiles: what a step, an evaluation and a selection cost on a GPU is decided here."""
