"""tools/build/hostcc: the compiler of programs that the build runs."""
import os
import shutil
import subprocess

import pytest

import i386
from fakes import machine  # noqa: F401

CROSS = "i686-linux-gnu-gcc"
SOURCE = '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n'
WITHOUT_LIBRARY = 'echo "cannot find crt1.o" >&2; exit 1'


def compile(machine, gcc=None, cross=None):
    """Compiles a program with fake compilers; True is the real one."""
    (machine.root / "build").mkdir()
    for name, script in ("gcc", gcc), (CROSS, cross):
        if script:
            machine.fake(name, script if script is not True else
                         f'PATH={os.defpath} exec {shutil.which(name)} "$@"')
    source, program = machine.folder / "hello.c", machine.folder / "hello"
    source.write_text(SOURCE)
    done = machine.run("tools/build/hostcc", "-O1", str(source), "-o",
                       str(program))
    assert list((machine.root / "build").iterdir()) == []
    return done, program


RUNS_I386 = pytest.mark.skipif(not i386.RUNS, reason="it runs no i386 programs")


@pytest.mark.parametrize("gcc, by", [
    (True, "gcc -O1"),
    pytest.param(None, f"{CROSS} -static -O1", marks=RUNS_I386),
    pytest.param(WITHOUT_LIBRARY, f"{CROSS} -static -O1", marks=RUNS_I386)])
def test_it_makes_a_program_that_runs(machine, gcc, by):
    done, program = compile(machine, gcc, True)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert machine.calls()[-1].startswith(by)
    assert subprocess.check_output([program], text=True) == "hello\n"


def test_whether_this_machine_runs_i386_programs(machine):
    """tools/build/runs-i386 is right, by a program that the compiler makes."""
    (machine.folder / "hello.c").write_text(SOURCE)
    subprocess.run([CROSS, "-static", machine.folder / "hello.c", "-o",
                    machine.folder / "hello"], check=True)
    try:
        runs = subprocess.check_output([machine.folder / "hello"], text=True) == "hello\n"
    except OSError:
        runs = False
    assert i386.RUNS == runs


def test_a_machine_that_runs_no_i386_programs(machine):
    done, program = compile(
        machine, cross='while [ "$1" != -o ]; do shift; done\n'
        'echo strange >"$2"; chmod 755 "$2"')
    assert done.returncode == 1 and not program.exists(), done
    assert "apt-get install gcc libc6-dev" in done.stderr
    assert done.stderr.count("\n") == 1, done
