"""Coverage: which of PyTorch's CUDA operators the backend has, and where each of them comes from.

`matrix` computes it, `report` writes it down, `cli` is `opgen coverage`. Nothing here imports torch.
"""
