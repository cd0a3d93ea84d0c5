"""The shipped kernels on a GPU, beside what they replace: `python -m benchmarks.gpu`."""
