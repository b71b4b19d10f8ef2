"""The kernel and the test kernel: the latter is the same objects and those of
tests/kernel."""
import os
import re
import shutil
import subprocess

import pytest

from machine import ROOT, VM, vm

NORMAL, TESTS = f"{ROOT}/build/kernel.elf", f"{ROOT}/build/kernel-test.elf"
SETS = ("set_tests", "set_testers")


def sections(kernel):
    return re.findall(r"\] (\S+) ", subprocess.run(
        ["readelf", "-SW", kernel], check=True, capture_output=True,
        text=True).stdout)


def test_no_test_is_in_the_kernel_that_people_boot():
    assert not set(SETS) & set(sections(NORMAL))
    assert set(SETS) <= set(sections(TESTS))


def test_what_is_tested_is_what_people_boot():
    def code(kernel):
        text = subprocess.run(["nm", "-S", kernel], check=True,
                              capture_output=True, text=True).stdout
        return set(re.findall(r"^\w+ (\w+) ([Tt] \S+)$", text, re.MULTILINE))
    assert code(NORMAL) and code(NORMAL) <= code(TESTS)


@pytest.mark.parametrize("argument", ("test=all", "test=locks_exclude",
                                      "plant=deep-recursion"))
def test_the_wrong_kernel_says_which_is_right(argument):
    run = vm(None, "--console", "--kernel", NORMAL, "--kargs", argument)
    assert run.status == 1, run
    assert re.search(f"^{argument}: .* built without tests: boot kernel-test.elf",
                     run.output, re.MULTILINE), run
    assert "# running" not in run.output, run


@pytest.mark.parametrize("how", ([], ["--iso"]), ids=("multiboot", "iso"))
def test_the_right_kernel_is_booted_for_tests(how):
    run = vm(None, "--console", *how, "--kargs", "test=locks_exclude")
    assert run.status == 0 and "# 1 passed, 0 failed" in run.output, run


@pytest.mark.parametrize("age", (None, 1), ids=("missing", "old"))
def test_an_old_kernel_is_not_tested(tmp_path, age):
    """An outdated test kernel is refused: make run does not rebuild it."""
    for folder in "tools", "build":
        (tmp_path / folder).mkdir()
    shutil.copy(VM, tmp_path / "tools")
    shutil.copy(f"{ROOT}/tools/own_folder.py", tmp_path / "tools")
    (tmp_path / "build/kernel.elf").touch()
    if age:
        (tmp_path / "build/kernel-test.elf").touch()
        os.utime(tmp_path / "build/kernel-test.elf", (age, age))
    run = subprocess.run([tmp_path / "tools/vm", "--console", "--kargs", "test=all"],
                         capture_output=True, text=True, env={**os.environ,
                                                              "STROBE_VM": ""})
    assert run.returncode == 2 and "run make kernel" in run.stderr, run


def test_both_run_programs():
    """Both kernels run programs, each with its own symbols."""
    ids = set()
    for kernel in NORMAL, TESTS:
        run = vm("sysinfo kernel.build_id; sysinfo kernel.symbols | head -n 400",
                 "--kernel", kernel)
        assert run.status == 0, run
        found = re.findall(r"\b(c0\w{6})\b.*?\b([a-z]\w+)$", run.output,
                           re.MULTILINE)
        nm = subprocess.run(["nm", kernel], check=True, capture_output=True,
                            text=True).stdout
        assert len(found) > 100, run
        for address, name in found:
            assert re.search(f"^{address} [tT] {name}$", nm, re.MULTILINE), \
                (kernel, name, address)
        ids.add(run.output.split("\n")[0])
    assert len(ids) == 2, ids
