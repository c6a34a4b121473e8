"""What other suites are compared with, measured on the same machine in the same run."""

import numpy as np


class NumpyLaplace:
    """The raw noise alone: two Laplace numbers a release, nothing snapped, not cryptographic."""

    params = [10_000_000]
    param_names = ["releases"]

    def time_laplace(self, releases):
        np.random.default_rng().laplace(size=(releases, 2))
