"""The kernels for processors, compiled by numba."""
