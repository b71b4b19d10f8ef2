"""tools/build/layers: what goes against the order of the layers is named."""
import os
import subprocess

import pytest

from machine import ROOT

TREE = {
    "kernel/layers.txt": "low: kernel/low/\nhigh: kernel/high/\n",
    "kernel/low/low.h": "UPCALL int asked(void);\nint hidden(void);\n",
    "kernel/low/low.c": '#include "kernel/low/low.h"\n'
                        "int low(void) { return asked(); }\n",
    "kernel/high/high.c": "int asked(void) { return 1; }\n"
                          "int hidden(void) { return 2; }\n",
    "kernel/high/private/high.h": "int hidden(void);\n",
}


@pytest.fixture
def tree(tmp_path):
    def check(objects=(), **changed):
        for path, text in {**TREE, **changed}.items():
            os.makedirs(os.path.dirname(tmp_path / path), exist_ok=True)
            (tmp_path / path).write_text(text)
        for path in ("kernel/low/low.c", "kernel/high/high.c", *objects):
            os.makedirs(os.path.dirname(tmp_path / "build" / path), exist_ok=True)
            subprocess.run(["gcc", "-c", "-w", "-DUPCALL=", "-I.", path, "-o",
                            f"build/{path}.o"], cwd=tmp_path, check=True)
        return subprocess.run([f"{ROOT}/tools/build/layers", "check", "build"],
                              cwd=tmp_path, capture_output=True, text=True)
    return check


def test_what_holds(tree):
    done = tree()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_include_that_goes_up(tree):
    done = tree(**{"kernel/low/low.c":
                   '\n#include "kernel/high/private/high.h"\nint low;\n'})
    assert done.returncode == 1
    assert done.stdout == ("kernel/low/low.c:2: includes kernel/high/private/high.h:"
                           " low is below high\n")


def test_a_call_that_goes_up(tree):
    done = tree(**{"kernel/low/low.c": '#include "kernel/low/low.h"\n'
                                       "int low(void) { return hidden(); }\n"})
    assert done.returncode == 1
    assert done.stdout.startswith(
        "kernel/low/low.c: uses hidden of kernel/high/high.c: low is below high"), \
        done.stdout


def test_an_object_whose_source_is_gone(tree, tmp_path):
    tree(**{"kernel/low/old.c": "int hidden(void);\nint old(void)"
                                " { return hidden(); }\n"},
         objects=("kernel/low/old.c",))
    (tmp_path / "kernel/low/old.c").unlink()
    assert tree().returncode == 0


def test_the_kernel():
    done = subprocess.run(["tools/build/layers", "check", "build/kernel"], cwd=ROOT,
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout


def test_a_file_in_no_layer(tree):
    done = tree(**{"kernel/other/a.c": "int a;\n"})
    assert done.returncode == 1 and "kernel/other/a.c: is in no layer" in done.stderr
