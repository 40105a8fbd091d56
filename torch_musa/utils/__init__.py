"""Tools for people who build on torch_musa: porting CUDA sources, and building extensions.

These modules are for build time: nothing that runs a model imports them. They stand on `opgen` (the port, Ninja), which
nothing else in this package does.
"""
