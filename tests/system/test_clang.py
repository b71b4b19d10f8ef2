"""The kernel built with clang: its in-kernel tests and the guest programs."""
import pytest

from checkers import PROGRAMS, check_in_kernel, check_program, results
from tiers import BOTH


@pytest.mark.parametrize("smp", BOTH)
def test_in_kernel(smp):
    check_in_kernel("clang", smp)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    check_program(results("clang", 1)[program])


def test_machine():
    run = results("clang", 1)[None]
    assert run.status == 0, run
