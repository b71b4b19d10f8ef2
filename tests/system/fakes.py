"""Fake commands for tests of Strobe's tools: apt, dpkg and a container engine that
log their calls. They need no network and no root, and install nothing."""
import os
import shutil
import subprocess

import pytest

from machine import PATIENCE, ROOT

# The only system commands that the tools under test call.
COMMANDS = ("awk cat cksum cmp cp cut df dirname env flock grep mkdir mktemp "
            "mv realpath rm sed sh sha256sum sort touch").split()
USER = 4711


class Machine:
    """A folder with a copy of Strobe's tools and a PATH with fake commands. Each call
    of a fake is a line of `calls`."""

    def __init__(self, folder):
        self.folder = folder
        self.log = folder / "calls"
        self.bin = folder / "bin"
        self.bin.mkdir()
        for command in COMMANDS:
            os.symlink(shutil.which(command), self.bin / command)
        self.fake("id", f"echo {USER}", logged=False)
        self.fake("uname", "echo x86_64", logged=False)
        self.root = folder / "strobe"
        (self.root / "tools/build").mkdir(parents=True)
        for name in ("tools/deps", "tools/container", "tools/build/fetch",
                     "tools/build/hostcc", "Containerfile"):
            shutil.copy(f"{ROOT}/{name}", self.root / name)
        self.write(self.root / "tools/build/runs-i386")

    def fake(self, name, script="", logged=True):
        path = self.bin / name
        path.unlink(missing_ok=True)
        log = f'echo "{name} $*" >>"{self.log}"\n' if logged else ""
        self.write(path, f"{log}{script}")

    @staticmethod
    def write(path, script=""):
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def run(self, *command, **variables):
        return subprocess.run(
            [self.root / command[0], *command[1:]], capture_output=True,
            text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
            env={"PATH": str(self.bin), "TERM": "red", **variables})

    def calls(self, beginning=""):
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if line.startswith(beginning)]


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)
