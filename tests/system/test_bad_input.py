"""Bad input from outside is reported, and the machine goes on."""
import re
import subprocess

import pytest

from checkers import FINE_CLOCK, NOTHING_LOST, options
from damage import cases, damaged
from machine import PATIENCE, ROOT, batch, vm
from tiers import BOTH

SCRIPTS = {
    "foreign program": "cp /bin/tester x; printf '\\002' | dd of=x bs=1 seek=4"
                       " conv=notrunc 2>/dev/null; ./x; echo $?",
    "corrupt program": "head -c 300 /bin/tester >x; chmod +x x; ./x; echo $?",
    "shell goes on": "head -c 100 /dev/urandom >x; chmod +x x; ./x;"
                     " echo still here",
    "no such program": "/bin/nothing; echo $?",
}


@pytest.fixture(scope="module")
def results():
    return batch(SCRIPTS)


def test_foreign_programs(results):
    # 126: the shell found it and could not run it; 2, 127: it ran it as a shell
    # script, as POSIX requires after ENOEXEC.
    for name in ("foreign program", "corrupt program"):
        assert results[name].status == 0, results[name]
        assert results[name].output.strip() in ("126", "2", "127"), \
            results[name]
    assert results["shell goes on"].output.endswith("still here\n")
    assert results["no such program"].output == "127\n"


# Whatever a program does that begins, it does for 20 ms, as a user.
RUN_DAMAGED = """chmod 755 /damaged; mkdir -m 777 /tmp/own; su user -c 'cd /tmp/own
for head in /damaged/*.of*; do
    cat $head /damaged/rest.${head##*.of} >x; chmod 755 x
    (exec ./x) >/dev/null 2>&1 & usleep 20000; kill -9 $! 2>/dev/null; wait $!; echo >>count
done; wc -l <count' && stats --audit >/dev/null && echo balanced"""
HEAD = 512  # bytes: the ELF header, and the program headers


@pytest.mark.parametrize("kernel", ("addresses", "plain") if cases(0) else ("addresses",))
def test_damaged_programs(tmp_path, kernel):
    """exec of programs whose headers are damaged: refused, or they end; the kernel that
    looks for wrong accesses finds none, and no memory is lost. With CASES on the plain
    kernel, too."""
    folder, count = tmp_path / "damaged", cases(60)
    folder.mkdir()
    for number, path in enumerate(("guest/pie", "user/tester")):
        stripped = tmp_path / str(number)
        subprocess.run(["i686-linux-gnu-strip", "-s", f"{ROOT}/build/{path}", "-o", stripped],
                       check=True)
        data = stripped.read_bytes()
        (folder / f"rest.{number}").write_bytes(data[HEAD:])
        for case in range(number, count, 2):
            (folder / f"{case}.of{number}").write_bytes(damaged("elf", case, data[:HEAD]))
    plain = kernel == "plain"
    run = vm(RUN_DAMAGED, "--add", str(tmp_path), *([] if plain else options(kernel)),
             *FINE_CLOCK, smp=1, timeout=PATIENCE + count)
    assert run.status == 0 and run.output.split() == [str(count), "balanced"], run
    assert plain or NOTHING_LOST in run.console, run


def test_unknown_argument():
    result = vm(None, "--console", "--kargs",
                "test=none-of-that-name no_such_argument=1")
    assert "no_such_argument" in result.output, result


def test_long_command_line():
    """A command line that is cut off is reported, with its last words."""
    words = "maxcpus=1 " * 120
    result = vm("dmesg", "--kargs", words)
    said = re.search("command line is truncated at: '(.{10,}?)'", result.output)
    assert said and said.group(1) in words, result


def test_bad_values_of_arguments():
    """Each bad argument is reported, and ignored."""
    values = ("maxcpus=few", "acpi=maybe", "timer=sundial", "console=teletype",
              "clocksource=sundial", "maxcpus=")
    for value in values:
        result = vm("nproc; dmesg", "--kargs", value, smp=3)
        assert result.output.startswith("3\n"), result
        assert f"{value}: " in result.output or \
            f"{value} cannot be used" in result.output, result


@pytest.mark.parametrize("cpu,lacks", (
    ("486", "CMOV TSC"), ("pentium", "CMOV"), ("qemu32,-pse", "PSE (4 MiB pages)")))
def test_cpu_too_old(cpu, lacks):
    """Without the i686's instructions the kernel does not run: it reports what is lacking
    before it uses the first."""
    result = vm("true", "--cpu", cpu)
    assert result.status == 125, result
    assert f"older than i686: it lacks {lacks}\n" in result.errors, result


def test_pae_without_cmpxchg8b():
    """Without CMPXCHG8B, PAE entries cannot be changed atomically: PAE is off."""
    result = vm("/test/mm_fork && grep -w flags /proc/cpuinfo; dmesg", "--cpu",
                "qemu32,-cx8", smp=2)
    assert result.status == 0, result
    assert "warning: the CPU has PAE, but not CMPXCHG8B" in result.output, result
    assert not re.search(r"^flags.*\bpae\b", result.output, re.MULTILINE), result


@pytest.mark.parametrize("keep", (0, 1, 5000, 1000000))
def test_truncated_initrd(keep, tmp_path):
    """A truncated initrd stops the machine with a clear message."""
    initrd = tmp_path / "initrd"
    with open(f"{ROOT}/build/initrd", "rb") as file:
        initrd.write_bytes(file.read(keep))
    done = subprocess.run(
        ["qemu-system-i386", "-kernel", f"{ROOT}/build/kernel.elf",
         "-initrd", initrd, "-m", "128", "-display", "none", "-nodefaults",
         "-serial", "stdio", "-no-reboot",
         "-device", "isa-debug-exit,iobase=0xf4,iosize=4"],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
    text = done.stdout.decode(errors="replace")
    assert done.returncode == 125, text
    assert "initrd" in text or "init" in text, text


def test_fork_bomb():
    """In little memory fork fails with EAGAIN or ENOMEM, and the shell survives."""
    result = vm("/test/forkbomb && echo survived", "--mem", "64")
    assert result.status == 0, result
    assert result.output.endswith("survived\n")


@pytest.mark.parametrize("smp", BOTH)
def test_fork_bomb_of_shells(smp):
    """The classic fork bomb leaves enough memory for a shell that ends it without fork.
    (It may end by itself: a shell that cannot fork exits. It reports its start while
    there is memory for that.)"""
    script = """
        mkfifo /tmp/never
        wait_for() { read -t $1 line <>/tmp/never; }
        echo ': >/tmp/begun; bomb() { bomb | bomb & }; bomb' >/tmp/bomb
        setsid sh /tmp/bomb >/dev/null 2>&1 &
        until [ -e /tmp/begun ]; do wait_for 0.1; done
        wait_for 3
        kill -9 -$! 2>/dev/null
        while kill -0 -$! 2>/dev/null; do wait_for 0.2; done
        ls / >/dev/null && ps -o args | grep -c '^sh /tmp/bomb'"""
    result = vm(script, "--mem", "64", smp=smp)
    assert result.status == 1 and result.output == "0\n", result


def test_out_of_memory():
    """A program that takes all memory fails or is killed; the others survive."""
    result = vm("lua -e 'local t = {} for i = 1, 1e9 do t[i] ="
                " (\"x\"):rep(100000) .. i end'; echo status $?;"
                " ls / | wc -l", "--mem", "64")
    assert result.status == 0, result
    assert "status 0" not in result.output, result


def test_full_file_system():
    result = vm("cat /dev/zero >/tmp/big; echo status $?; rm /tmp/big;"
                " echo small >/tmp/x && cat /tmp/x", "--mem", "64")
    assert result.status == 0, result
    assert "status 1" in result.output and result.output.endswith("small\n")
    assert "No space left" in result.errors or \
        "memory" in result.errors, result
