"""Cases of every shipped kernel, for any device: the interpreter's CPU, or a GPU.

A kernel's module here has ``cases(sizes)``; ``registry.all_cases`` gathers them and ``compare.compare`` judges one.
"""
