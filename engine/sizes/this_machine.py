"""Finds the name of this machine's processor."""

import platform


def processor() -> str:
    """The name of this machine's processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if "model name" in line]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
