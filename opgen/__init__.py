"""opgen: operator registrations, coverage and porting for a PrivateUse1 backend of PyTorch."""

from __future__ import annotations

__version__ = "0.1.0"
