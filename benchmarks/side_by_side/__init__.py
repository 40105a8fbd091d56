"""Device `musa` beside a native device, in one process: what `benchmarks/gpu.py` measures and how it is shown.

    record    figures, their targets, the file that they are kept in
    measure   the two devices, and how time is taken on both alike
    cases     what is measured; kernels, products, models, allocator hold the parts
    worker    measures, in a process of its own
    explain   where the time of a case goes, by the profiler
    report    the table and the page; chart: the plot

`record`, `report` and `chart` need no torch: they run where the file is brought to.
"""
