# SPDX-License-Identifier: Apache-2.0
"""Khoro as a backend of torch.distributed, for tensors on the processor.

    import torch.distributed as dist
    import khoro.torch

    dist.init_process_group("khoro")

DDP, FSDP2 and DeviceMesh work on it as they do on Gloo.
"""
from __future__ import annotations

import torch.distributed as dist

from khoro.torch._group import KhoroGroup, make_group

__all__ = ["KhoroGroup"]

if "KHORO" not in dist.Backend._plugins:
    dist.Backend.register_backend("khoro", make_group, extended_api=True, devices=["cpu"])
