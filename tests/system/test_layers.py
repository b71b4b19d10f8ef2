"""tools/build/layers reports violations of the layers' order."""
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


PRIVATE = TREE["kernel/layers.txt"] + "private kernel/high/private/*.h"


@pytest.mark.parametrize("path, folders, wrong", [
    ("kernel/high/private/in.c", "", ""),
    ("kernel/high/out.c", "", "kernel/high/out.c:1: includes kernel/high/private/high.h,"
                              " private to kernel/high/private/\n"),
    ("kernel/high/out.c", ": kernel/high/out", ""),
    ("kernel/high/out.c", ": kernel/high/ kernel/low/",
     "kernel/layers.txt: private kernel/high/private/*.h: kernel/low/ does not include"
     " it\n"),
    ("kernel/high/out.h", "", "kernel/high/out.h:1: includes kernel/high/private/high.h,"
                              " private to kernel/high/private/\n"),
])
def test_a_private_header(tree, path, folders, wrong):
    done = tree(**{"kernel/layers.txt": f"{PRIVATE}{folders}\n",
                   path: '#include "kernel/high/private/high.h"\n'})
    assert (done.returncode, done.stdout) == (bool(wrong), wrong), done


def test_a_private_header_that_is_not_there(tree):
    done = tree(**{"kernel/layers.txt": TREE["kernel/layers.txt"] + "private none.h\n"})
    assert (done.returncode, done.stdout) == (
        1, "kernel/layers.txt: private none.h: no file includes it\n"), done


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


def test_the_page(tree, tmp_path):
    """The table follows the includes, and all else stays."""
    page = "before\n<!-- layers: make docs -->\n{}<!-- end -->\nbehind\n"
    tree(**{"page.md": page.format("old\n"),
            "kernel/layers.txt": "low: kernel/low/ # what is low\nhigh: kernel/high/\n",
            "kernel/high/high.c": '#include "kernel/low/low.h"\n'})

    def made():
        return subprocess.run([f"{ROOT}/tools/build/layers", "page", "page.md"],
                              cwd=tmp_path, capture_output=True, text=True)

    assert made().stdout == page.format(
        "| layer | what it is | includes |\n|---|---|---|\n| `high` |  | low |\n"
        "| `low` | what is low |  |\n")
    (tmp_path / "page.md").write_text("before\n")
    assert made().returncode == 1


FRAME = '#include "kernel/low/low.h"\n'
FRAMES = """UPCALL int asked(void);
struct trapframe { unsigned ds, esp; };
struct trapframe *call_frame(int);
struct cpu { struct trapframe *newest; };
"""
MACHINE = {
    "asm": ('int low;\n// asm, and "asm"\nvoid f(void) { __asm__ volatile("nop"); }\n',
            3, "__asm__: instructions are arch's"),
    "goto": ("int low;\nvoid f(void) { asm goto(\"\" :::: a); a:; }\n",
             2, "asm: instructions are arch's"),
    "builtin": ("/* 1\n2 */ void f(void) { __builtin_ia32_pause(); }\n",
                2, "__builtin_ia32_pause: instructions are arch's"),
    "register": ("struct a { int eip; };\nint g(struct a *p) { return p\n->eip; }\n",
                 3, "eip: a register is arch's"),
    "constant": ("enum { EFLAGS_IF };\n", 1, "EFLAGS_IF: a register is arch's"),
    "member": (f"{FRAME}int f(const struct trapframe *tf)\n"
               "{ return tf->ds; }\n",
               3, "ds: a trap frame's member is arch's (arch/regs.h)"),
    "function": (f"{FRAME}int f(void) {{ return call_frame(1)->ds; }}\n",
                 2, "ds: a trap frame's member is arch's (arch/regs.h)"),
    "of another": (f"{FRAME}int f(struct cpu *c)\n{{ return c->newest->ds; }}\n",
                   3, "ds: a trap frame's member is arch's (arch/regs.h)"),
}


@pytest.mark.parametrize("what", MACHINE)
def test_the_machine_outside_of_arch(tree, what):
    text, line, rule = MACHINE[what]
    done = tree(**{"kernel/low/low.c": text, "kernel/low/low.h": FRAMES})
    assert done.returncode == 1
    assert done.stdout == f"kernel/low/low.c:{line}: names {rule}\n"


def test_what_only_looks_like_the_machine(tree):
    done = tree(**{"kernel/low/low.c": """
// asm(""), tf->eip
const char *low = "asm(tf->eip) /*", a = '"', b; // "
int assembly, asmus; struct v { int fs, eips; };
int f(struct v *tf) { /* asm
  p->eax */ return tf->fs + tf->eips; }
"""})
    assert (done.returncode, done.stdout) == (0, "")


def test_the_machine_where_it_is_allowed(tree):
    layers = TREE["kernel/layers.txt"] + "machine kernel/low/low.c assembly: why\n"
    assembly, register = MACHINE["asm"][0], MACHINE["register"][0]
    allowed = {"kernel/layers.txt": layers}
    assert tree(**allowed, **{"kernel/low/low.c": assembly}).returncode == 0
    done = tree(**allowed, **{"kernel/low/low.c": assembly + register})
    assert done.stdout.endswith(": names eip: a register is arch's\n"), done.stdout
    done = tree(**allowed)
    assert done.returncode == 1
    assert done.stdout == ("kernel/layers.txt: machine kernel/low/low.c assembly:"
                           " there is none\n")


def test_a_file_in_no_layer(tree):
    done = tree(**{"kernel/other/a.c": "int a;\n"})
    assert done.returncode == 1 and "kernel/other/a.c: is in no layer" in done.stderr
