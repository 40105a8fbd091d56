"""Operators that are right, or wrong in one way each, registered from Python: `opgen test --load` runs this file."""

import ctypes
import os
import time

import torch

library = torch.library.Library("truthtest", "DEF")


def define(name, on_device, on_cpu=torch.neg):
    library.define(f"{name}(Tensor self) -> Tensor")
    library.impl(name, on_cpu, "CPU")
    if on_device is not None:
        library.impl(name, on_device, "PrivateUse1")


def wrong(x):
    return torch.neg(x) + 1 if x.numel() > 4 else torch.neg(x)


def crashes(x):
    if x.dtype == torch.float64 and x.numel() > 4:
        ctypes.string_at(0)  # a read through a null pointer
    return torch.neg(x)


def aborts(x):
    os.write(2, b"the kernel's last words\n")
    os.abort()


def ends(x):
    os._exit(3)


def hangs(x):
    if x.dtype == torch.int64:
        time.sleep(3600)
    return torch.neg(x)


def refuses(x):
    if x.numel() > 4:
        raise ValueError("too large for me")
    return torch.neg(x)


def lacks(x):
    if x.dtype == torch.float64:
        raise RuntimeError("\"lacks\" not implemented for 'Double'")
    return torch.neg(x)


def floats_only(x):
    if not x.dtype.is_floating_point:
        raise TypeError("floating numbers only")
    return torch.neg(x)


def breaks_the_cpu(x):
    os.abort()


class TwiceTheGradient(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return torch.neg(x)

    @staticmethod
    def backward(context, gradient):
        return -2 * gradient


define("wrong_gradient", torch.neg)
library.impl("wrong_gradient", torch.neg, "AutogradCPU")
library.impl("wrong_gradient", TwiceTheGradient.apply, "AutogradPrivateUse1")
define("right", torch.neg)
define("breaks_the_cpu", torch.neg, breaks_the_cpu)
define("takes_what_the_cpu_refuses", torch.neg, floats_only)
define("refuses_what_the_cpu_refuses", floats_only, floats_only)
define("falls_back", None)
for operator in (wrong, crashes, aborts, ends, hangs, refuses, lacks):
    define(operator.__name__, operator)
