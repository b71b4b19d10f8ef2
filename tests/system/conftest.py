"""System tests need what `make` builds."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from machine import ROOT  # noqa: E402


def pytest_configure():
    for file in ("build/kernel.elf", "build/initrd", "build/strobe.iso"):
        if not os.path.exists(f"{ROOT}/{file}"):
            pytest.exit(f"there is no {file}: run make", returncode=2)
