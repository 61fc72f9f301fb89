"""How a process of the command line keeps its memory."""

from __future__ import annotations

import os
import platform
import sys

GLIBC_TUNABLES = ":".join(
    f"glibc.malloc.{name}" for name in ("mmap_max=0", "trim_threshold=100000000000", "top_pad=268435456", "hugetlb=1")
)


def keep_freed_memory():
    """Starts the process anew with settings of glibc's allocator that it reads at the start only.

    By default it hands large buffers back to the kernel as soon as they are free, and a training step asks for hundreds
    of megabytes anew, page fault by page fault. With memory kept, in huge pages, training on two cores of a virtual
    machine took from 4 % less to less than half the time, as its host had it; see `training/benchmarks/memory.py`.
    """
    if platform.libc_ver()[0] != "glibc" or "GLIBC_TUNABLES" in os.environ:
        return
    os.environ["GLIBC_TUNABLES"] = GLIBC_TUNABLES
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
