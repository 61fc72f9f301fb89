"""The memory of the process that runs the tests."""

import os


def resident_bytes():
    """How much of it is in use, from /proc."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
