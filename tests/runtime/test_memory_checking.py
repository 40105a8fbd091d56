"""Device memory is out of bounds for the host, and a checker that watches every tensor."""

from __future__ import annotations

import signal

CHECKED = {"TORCH_MUSA_HOST_PROTECT": "mprotect", "PYTORCH_NO_MUSA_MEMORY_CACHING": "1"}


def test_the_host_cannot_read_a_tensor_of_the_device(run_python):
    done = run_python(
        """
        import ctypes, torch
        x = torch.ones(100, device="musa")
        torch.musa.synchronize()  # while work runs, the pages are open
        ctypes.string_at(x.data_ptr() + 40, 4)
        print("it could")
        """,
        check=False,
        **CHECKED,
    )
    assert done.returncode == -signal.SIGSEGV, done.stdout + done.stderr
    assert "host code read device memory outside of any kernel or copy" in done.stderr
    assert "byte 40 of the 400-byte block" in done.stderr
    assert "empty" in done.stderr  # who allocated: at::empty and what called it


def test_operators_run_with_everything_checked(run_python):
    run_python(
        """
        import torch
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                                  torch.nn.Flatten(), torch.nn.Linear(8 * 36, 10)).to("musa")
        x = torch.randn(4, 3, 8, 8, device="musa")
        loss = torch.nn.functional.cross_entropy(net(x), torch.tensor([1, 2, 3, 4], device="musa"))
        loss.backward()
        torch.optim.SGD(net.parameters(), lr=0.1).step()
        assert loss.item() > 0
        """,
        **CHECKED,
    )


def test_without_caching_every_tensor_is_an_allocation_of_its_own(run_python):
    run_python(
        """
        import torch
        x = torch.empty(100, dtype=torch.uint8, device="musa")
        assert torch.musa.memory_reserved() == 100
        y = torch.empty(7, dtype=torch.uint8, device="musa")
        assert torch.musa.memory_reserved() == 107
        del x
        assert torch.musa.memory_reserved() == 7
        assert torch.musa.memory_stats()["num_device_free"] == 1
        """,
        PYTORCH_NO_MUSA_MEMORY_CACHING="1",
    )


def test_sums_of_nested_tensors_never_leave_the_device(run_python):
    run_python(
        """
        import torch
        torch.manual_seed(0)
        for rows in ([(2, 4), (5, 4), (0, 4)], [(2, 3), (5, 1), (3, 0), (2, 2)], [(3,), (2,)]):
            parts = [torch.randn(size) for size in rows]
            both = []
            for device in ("cpu", "musa"):
                x = torch.nested.nested_tensor(parts, device=device, requires_grad=True)
                total = x.sum(-1, keepdim=True)
                weights = [torch.full_like(t, i + 1.0) for i, t in enumerate(total.unbind())]
                (gradient,) = torch.autograd.grad(total, x, torch.nested.as_nested_tensor(weights))
                both.append([t.cpu() for t in (*total.unbind(), *gradient.unbind())])
            for one, other in zip(*both, strict=True):
                torch.testing.assert_close(one, other)
        """,
        **CHECKED,
    )
