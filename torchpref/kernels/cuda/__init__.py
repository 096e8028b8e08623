"""The kernel for CUDA devices, written in Triton."""
