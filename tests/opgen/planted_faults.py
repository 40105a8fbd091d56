"""Wrong operators that a reproducing script can import."""

from __future__ import annotations

import torch

aten = torch.ops.aten


def swapped_sub(self, other, alpha=1):
    return aten.sub(other, self, alpha=alpha)


def doubled_exp_out(self, out):
    return aten.exp.out(self * 2, out=out)


def cat_the_other_way(tensors, dim=0):
    return aten.cat(list(reversed(tensors)), dim)


def cube_for_square(self):
    return self * self * self
