"""tools/build/uncalled, with the Makefile's options, on a kernel of a few functions: it
reports exactly the unused ones."""
import pytest

from test_make import Tree

ENTRY = """
    .section .boot.text, "ax"
    .global boot_entry
boot_entry: call start
    jmp jumped_to
    .text
    .global jumped_to, called_from_c
jumped_to: ret
called_from_c: ret
"""
CODE = """
#include "lib/set.h"
void called_from_c(void);
// What is called in its own file alone is inlined there in an ordinary kernel.
int small(int x);
int small(int x) { return x + 1; }
static int number;
static void device_start(void) { number = small(number); }
struct device { void (*start)(void); };
static const struct device device = { device_start };
LINKER_SET_ADD(devices, device);
void start(void);
void start(void)
{
    called_from_c();
    LINKER_SET_FOR_EACH(const struct device, d, devices)
        (*d)->start();
}
"""
PLANTED = "int planted(int x);\nint planted(int x) { return x + 2; }\n"
# Unused functions that call each other.
PLANTED_PAIR = """
int planted(int x);
int other_planted(int x);
int planted(int x) { return other_planted(x) * 2; }
int other_planted(int x) { return x ? planted(x / 2) : 1; }
"""
SENTENCE = ": nothing in the kernel uses {}: remove it, or, if tests do, move it to tests/"


@pytest.fixture
def check(tmp_path):
    def run(code=CODE, entry=ENTRY, exceptions="", test="", header=""):
        tree = Tree(tmp_path)
        tree.write("kernel/entry.S", entry)
        tree.write("kernel/code.c", code)
        tree.write("kernel/uncalled.txt", exceptions)
        tree.write("tests/kernel/test_code.c", test)
        tree.write("kernel/base/code.h", header)
        return tree.make("uncalled", "KSOURCES=kernel/entry.S kernel/code.c",
                         "LWIP_SOURCES=")
    return run


def said(done):
    return [line for line in done.stdout.splitlines()
            if not line.startswith(("Building", "make"))]


def test_all_is_called(check):
    done = check()
    assert done.returncode == 0 and said(done) == [], done


@pytest.mark.parametrize("planted, names", [
    (PLANTED, ["planted"]), (PLANTED_PAIR, ["other_planted", "planted"]),
    ("int planted_number = 3;\n", ["planted_number"])], ids=str)
def test_a_planted_one(check, planted, names):
    done = check(CODE + planted)
    assert done.returncode == 2, done
    assert said(done) == ["kernel/code.c" + SENTENCE.format(name)
                          for name in names], done


def test_one_in_assembler(check):
    done = check(entry=ENTRY + "    .global planted_in_assembler\nplanted_in_assembler: ret\n")
    assert done.returncode == 2, done
    assert said(done) == ["kernel/entry.S" + SENTENCE.format(
        "planted_in_assembler")], done


def test_one_that_a_test_alone_calls(check):
    done = check(CODE + PLANTED, test="int planted(int x);\n"
                 "int test(void) { return planted(1); }\n")
    assert done.returncode == 2, done
    assert said(done) == ["kernel/code.c" + SENTENCE.format("planted")], done


def test_an_inline_one(check):
    done = check(header="static inline int planted(int x)\n{\n    return x;\n}\n",
                 test="int test(void);\nint test(void) { return planted(1); }\n")
    assert done.returncode == 2, done
    assert said(done) == ["kernel/base/code.h" + SENTENCE.format("planted")], done


def test_exceptions_have_reasons_and_are_needed(check):
    assert check(CODE + PLANTED, exceptions="planted: a reason\n").returncode == 0


def test_an_exception_without_a_reason(check):
    done = check(CODE + PLANTED, exceptions="planted:\n")
    assert done.returncode == 2 and "planted: there is no reason" in done.stderr, done


def test_an_exception_that_is_not_needed(check):
    done = check(exceptions="start: a reason\n")
    assert done.returncode == 2, done
    assert said(done) == ["kernel/uncalled.txt: start is used, or is not there any "
                          "more: remove the line"], done
