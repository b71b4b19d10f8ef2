"""tools/vm --oracle: each executed instruction is counted once, by its path of calls. The
proof in each file is the kernel's clock, which counts instructions under --icount."""
import collections
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from machine import PATIENCE, ROOT, vm
from oracle import STROBE, functions, oracle, paths, proof, strobe

COMMANDS = {
    "pipeline": "seq 2000 | sort -r | gzip | gunzip | tail -n 1",
    "lua": "lua -e 'local s = 0 for i = 1, 20000 do s = s + i % 7 end print(s)'",
    "sqlite": "sqlite3 :memory: 'create table t(a); insert into t values(1);"
              "select sum(a) from t'",
    "sleep": "sleep 0.05",
    "files": "mkdir /tmp/a; cp /bin/busybox /tmp/a; rm -r /tmp/a; ls -lR / >/dev/null",
    "signals": "/test/signals",
    "tasks": "/test/process",
    "faults": "/test/badptr",
    "timers": "/test/timers",
    "profiled": "sprofile -F 5000 -g tester 20 >/dev/null",
}


# With several CPUs newer ones differ (docs/exact.md).
QEMU_OF_SEVERAL_CPUS = 7


def qemu_version():
    said = subprocess.run(["qemu-system-i386", "--version"], capture_output=True, text=True)
    return int(re.search(r"version (\d+)", said.stdout)[1])


@pytest.mark.parametrize("smp", (1, 2, 4))
@pytest.mark.parametrize("flat", (False, True))
def test_each_instruction_is_counted_once(tmp_path, smp, flat):
    """The clock agrees also through faults, signals, switches, sleep and NMIs."""
    if smp > 1 and qemu_version() > QEMU_OF_SEVERAL_CPUS:
        pytest.skip("this QEMU's turns are not followed exactly")
    # A tick that a handler sets (nmi-hpet) is late whenever QEMU runs the other CPUs first,
    # and if nearly all are, sprofile fails.
    command = "\n".join(COMMANDS.values()).replace("sprofile", "sprofile -s nmi-pit")
    _, times = proof(oracle(tmp_path, command, smp=smp, flat=flat))
    assert times > 1000


def addresses(file):
    """{address: instructions}: a sum, if several programs have code there."""
    found = collections.Counter()
    for address, count in re.findall(
            r"^ *(0x\w+) +(\d+) +[\d.]+%",
            strobe("report", "-n", "0", "--by", "address", "--no-inline", file),
            re.MULTILINE):
        found[address] += int(count)
    return found


def test_flat_counts(tmp_path):
    """They are those of the tree, of each address."""
    command = "/bin/true; seq 300 | sort -r | gzip >/dev/null; lua -e 'print(1)'; " \
        "/test/pie exec 20; tester 1"
    tree, flat = [oracle(tmp_path, command, name=f"flat{flat}", flat=flat)
                  for flat in (False, True)]
    proof(flat)
    assert addresses(tree) == addresses(flat)
    owners = owners_of(flat)
    assert {"kernel", "firmware", "busybox", "init", "lua", "pie", "tester"} <= \
        owners.keys() and len(owners) < 12, owners
    of_tree, of_flat = functions(tree), functions(flat)
    for name in ("burn_a", "burn_b", "luaV_execute", "task_exec"):
        assert of_tree[name] == of_flat[name] > 100, name
    loop = re.search(r"^ *(\d+) .*\tpush +%ebp",
                     strobe("annotate", "-s", "luaV_execute", flat), re.MULTILINE)
    assert int(loop[1]) > 0
    for arguments in (("tree", flat), ("calls", flat, "main")):
        done = subprocess.run([STROBE, *map(str, arguments)], text=True,
                              capture_output=True)
        assert done.returncode == 1 and not done.stdout, done
        assert "without calls: tools/vm --oracle FILE counts them" in done.stderr, done
    text = strobe("exact", "diff", flat, flat)
    assert text.startswith("+0 instructions: ") and "No paths: flat counts." in text


def test_shares_as_integers(tmp_path):
    """tester's loops are 2 : 1 : 1 to the instruction, and annotate counts them."""
    file = oracle(tmp_path, "tester 3")
    count = functions(file)
    assert count["burn_b"] == count["burn_c"] and \
        count["burn_a"] == 2 * count["burn_b"], count
    loop = re.search(r"^ *(\d+) .*\taddl +\$0x1,-0x8\(%ebp\)",
                     strobe("annotate", "-s", "burn_b", file), re.MULTILINE)
    assert int(loop[1]) == 300_000, loop


def test_callgrind_agrees(tmp_path):
    file = oracle(tmp_path, "seq 1000 | sort -r >/dev/null")
    total, _ = proof(file)
    strobe("export", "--callgrind", "-o", tmp_path / "callgrind", file)
    text = subprocess.run(["callgrind_annotate", tmp_path / "callgrind"], text=True,
                          capture_output=True, check=True).stdout
    assert re.search(rf"^{total:,} \(100.0%\) .*PROGRAM TOTALS$", text, re.MULTILINE), text


@pytest.mark.parametrize("smp", (1, 2, 4))
def test_the_machine_is_not_disturbed(tmp_path, smp):
    """The ledger after each command, and the clock, are the same with the oracle and
    without it. (With several CPUs QEMU's turns may differ once in a while, also
    without it.)"""
    command = "\n".join([f"{command}; stats --audit" for command in COMMANDS.values()] +
                        ["cat /proc/uptime; sysinfo system.cpus; stats"])
    for _ in range(1 if smp == 1 else 3):
        plain = vm(command, "--icount", "0", smp=smp)
        watched = vm(command, "--icount", "0", "--oracle", str(tmp_path / "counts"), smp=smp)
        assert plain.output.count("Difference") >= len(COMMANDS), plain
        if plain.output == watched.output and plain.console == watched.console:
            return
    assert plain.output == watched.output and plain.console == watched.console


def test_views_say_that_counts_are_exact(tmp_path):
    file = oracle(tmp_path, "true")
    total, _ = proof(file)
    assert strobe("report", file).splitlines()[:2] == [
        f"Profile {file} of true",
        f"Samples: {total} executed instructions, each counted once"]


def owners_of(file, *options):
    return {name: int(count) for count, name in re.findall(
        r"^ *(\d+) +[\d.]+% +(\S.*)$", strobe("exact", "-n", "0", *options, file),
        re.MULTILINE)}


def test_position_independent_programs(tmp_path):
    """Each has an address of its own; its loops have all their instructions."""
    file = oracle(tmp_path, "/test/pie 20; /test/pie exec 20; /test/pie fork 20", "--kargs",
                  "randomize_va_space=2")
    proof(file)
    count = functions(file)
    calls = 40  # each has 4 instructions outside its loop
    assert count["burn_a"] == 8_000_000 + 4 * calls, count
    assert count["burn_b"] == 4_000_000 + 4 * calls, count
    assert sum(name.startswith("pie in thread") for name in owners_of(file)) >= 3


def test_nmi_before_the_first_instruction_of_an_entry(tmp_path):
    """An NMI may come between `int $0x80` and the first instruction of its handler. Its
    return is no second system call, from the kernel. (In 150 million instructions 6 of
    3,000 NMIs do.)"""
    file = oracle(tmp_path, "exec profile -F 20000 -o /tmp/data dd if=/dev/zero "
                  "of=/dev/null bs=1 count=200000 2>/dev/null >/dev/null")
    proof(file)
    entries = [path for path, _ in paths(file, tmp_path)
               if "syscall_entry_point_[k]" in path]
    before = {path[path.index("syscall_entry_point_[k]") - 1] for path in entries}
    assert "__kernel_vsyscall" in before and "trap_return_[k]" not in before, before


def test_two_files_with_the_same_code(tmp_path):
    """Which of them was executed is not known, and the owner says so."""
    file = oracle(tmp_path, "tester 1")
    program = (pathlib.Path(ROOT) / "build/user/tester").read_bytes()
    (tmp_path / "other").mkdir()
    notes = subprocess.run(["readelf", "-n", f"{ROOT}/build/user/tester"], text=True,
                           capture_output=True, check=True).stdout
    build_id = bytes.fromhex(re.search(r"Build ID: (\w+)", notes)[1])
    (tmp_path / "other/twin").write_bytes(
        program.replace(build_id, bytes(len(build_id))))
    names = owners_of(file, "-d", tmp_path / "other")
    assert any(name.startswith("twin or tester in thread") for name in names), names
    assert any(name.startswith("tester in thread") for name in owners_of(file))


STRANGER = """
#include <time.h>
static volatile unsigned sum;
static __attribute__((noinline)) void strange(void) { for (int i = 0; i < 50000; i++) sum += i; }
int main(void)
{
    struct timespec t;
    for (int i = 0; i < 20; i++) { strange(); clock_gettime(CLOCK_MONOTONIC, &t); }
}
"""


def test_a_program_whose_file_is_not_there(tmp_path):
    """It is [unknown], and not what has the vDSO's code, which it executes, too; its functions
    are addresses. With --dir it has its names."""
    bin_ = tmp_path / "root/bin"
    bin_.mkdir(parents=True)
    (tmp_path / "stranger.c").write_text(STRANGER)
    subprocess.run([f"{ROOT}/tools/cc", tmp_path / "stranger.c", "-o", bin_ / "stranger"],
                   check=True)
    file = oracle(tmp_path, "stranger", "--add", str(tmp_path / "root"))
    owners = owners_of(file)
    thread, count = next((name.rsplit(" ", 1)[1], count) for name, count in owners.items()
                         if name.startswith("[unknown] in thread"))
    assert count > 4_000_000 and not any("vdso" in name for name in owners), owners
    known = owners_of(file, "--dir", bin_)
    assert known.get(f"stranger in thread {thread}") == count, known
    assert not any("[unknown]" in name for name in known), known
    top, tree = strobe("top", "-n", 8, file), strobe("tree", file)
    own = re.findall(r"^ *\d+ +[\d.]+% +[\d.]+% +\d+ +[\d.]+% +(.*)$", top, re.MULTILINE)
    calls = re.findall(r"^ +[\d.]+% +[\d.]+%  ([- ]*)(.*)$", tree, re.MULTILINE)
    assert len(own) == 8 and len(calls) > 8, (top, tree)
    assert not [name for name in own + [name for _, name in calls]
                if not name or name == "[kernel]"], (top, tree)
    assert sum(bool(re.match(r"0x\w+ \[unknown\]", name)) for name in own) >= 4, top
    # Of a kernel whose file is not there.
    bare = strobe("top", "-k", "/dev/null", "-n", 3, file)
    assert re.search(r"% +0x\w+ \[kernel\]$", bare, re.MULTILINE), bare


def test_runs_are_equal(tmp_path):
    files = [oracle(tmp_path, "seq 500 | sort -r | tail -n 1", name=f"run{i}")
             for i in range(2)]
    assert files[0].read_text() == files[1].read_text()
    assert strobe("exact", "diff", *files).startswith("+0 instructions: ")


def test_exact_difference(tmp_path):
    """The rows of a difference add up to the change of the total."""
    files = [oracle(tmp_path, f"tester {n}", name=f"run{n}") for n in (1, 2)]
    text = strobe("exact", "diff", "-n", "0", *files)
    change = int(re.match(r"([+-]\d+) instructions: ", text)[1])
    tables = text.split("\n\n")[1:]
    assert len(tables) == 2, text
    for table in tables:
        rows = re.findall(r"^ *([+-]\d+) +(\d+) +(\d+) +(\S.*)$", table, re.MULTILINE)
        assert sum(int(row[0]) for row in rows) == change
        assert all(int(c) == int(after) - int(before) for c, before, after, _ in rows)
    loops = re.findall(r"^ *\+(\d+) +\d+ +\d+ +(burn_\w)$", tables[0], re.MULTILINE)
    assert sorted(loops) == [("1600000", "burn_a"), ("800000", "burn_b"),
                             ("800000", "burn_c")], text


def test_owners_are_known(tmp_path):
    """What is not in a known program is the firmware only."""
    file = oracle(tmp_path, COMMANDS["tasks"])
    owners = owners_of(file)
    firmware = sum(n for name, n in owners.items() if name.startswith("firmware"))
    assert not any(name.startswith("?") for name in owners), owners
    unknown = functions(file)["[unknown]"]
    assert unknown - firmware <= sum(owners.values()) / 10_000, (unknown, firmware)


def test_idle_time_has_a_reason(tmp_path):
    """Idle time belongs to the program that sleeps, below the call in which it does."""
    file = oracle(tmp_path, "sleep 0.05")
    proof(file)
    halted = [int(re.search(r"\((\d+) ns", name)[1]) for name in owners_of(file)
              if re.match(r"idle \(\d+ ns halted\) after busybox in thread", name)]
    assert 48_000_000 < sum(halted) < 55_000_000, halted
    idle = [path for path, _ in paths(file, tmp_path)
            if path[0] == "[idle]" and "sleep_main" in path]
    assert idle and all("sched_start_cpu_[k]" in path or "schedule_[k]" in path
                        for path in idle), idle[:3]


def test_limit_of_paths(tmp_path):
    """If there are too many paths, the oldest and deepest are counted in their callers.
    Owners and functions keep their instructions."""
    command = "i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i+1)); done; tester 1"
    full, few = [oracle(tmp_path, command, *options, name=f"run{len(options)}")
                 for options in ((), ("--oracle-paths", "10000"))]
    for file in (full, few):
        proof(file)
    folded = re.search(r"^(\d+) paths were too many", strobe("exact", few), re.MULTILINE)
    assert int(folded[1]) > 10_000 and "too many" not in strobe("exact", full)
    assert few.read_text().count("\ncall ") < 11_000 < full.read_text().count("\ncall ")
    assert owners_of(full) == owners_of(few) and functions(full) == functions(few)


def test_killed_run(tmp_path):
    """The file of a machine that is killed has what was counted until a moment before."""
    file = tmp_path / "counts"
    machine = subprocess.Popen(
        [f"{ROOT}/tools/vm", "--smp", "1", "--icount", "0", "--oracle", str(file), "--",
         "tester 100000"], stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        end = time.monotonic() + PATIENCE
        while not file.exists() or file.stat().st_size < 1000:  # the head is shorter
            assert machine.poll() is None and time.monotonic() < end
            time.sleep(0.1)
    finally:
        os.killpg(machine.pid, signal.SIGKILL)
        machine.wait()
    total, _ = proof(file)
    assert total > 50_000_000
    assert "\nThe run was stopped: " in strobe("exact", file)
    assert functions(file)["burn_a"] > 1_000_000


@pytest.mark.parametrize("options, problem", [
    (("--icount", "3"), "--oracle counts instructions of 1 ns: --icount 0"),
    (("--oracle-paths", "10"), "--oracle-paths"),
    (("--oracle", "/nonexistent/file"), "/nonexistent/file: No such file or directory"),
    (("--keep-memory", "/tmp"), "--oracle does not go with --keep-memory"),
    (("--oracle-flat", "/tmp/x"), "--oracle and --oracle-flat count the same run"),
])
def test_bad_options(tmp_path, options, problem):
    result = vm("true", "--oracle", str(tmp_path / "counts"), "--icount", "0", *options)
    assert result.status == 2 and problem in result.errors, result


def run_vm(vm_file, folder, *options):
    return subprocess.run([vm_file, "--oracle", folder / "counts", *options, "--", "true"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, "STROBE_VM": ""})


@pytest.mark.parametrize("plugin", (None, ""))
def test_without_the_plugin(tmp_path, plugin):
    """make has not built it, or has found a QEMU without plugins."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "build").mkdir()
    copy = tmp_path / "tools/vm"
    copy.write_text(pathlib.Path(f"{ROOT}/tools/vm").read_text())
    copy.chmod(0o755)
    (tmp_path / "tools/own_folder.py").symlink_to(f"{ROOT}/tools/own_folder.py")
    for name in ("kernel.elf", "initrd", "tests.cpio"):
        (tmp_path / "build" / name).symlink_to(f"{ROOT}/build/{name}")
    if plugin is not None:
        (tmp_path / "build/oracle.so").write_text(plugin)
    done = run_vm(copy, tmp_path)
    assert done.returncode == 1 and done.stderr == (
        "tools/vm: --oracle needs build/oracle.so, which make compiles for a QEMU with "
        "plugins: build/oracle.so.log has the reason\n"), done


def test_another_qemu_without_plugins(tmp_path):
    qemu = tmp_path / "qemu"
    qemu.write_text("#!/bin/sh\necho \"$0: -plugin: invalid option\" >&2\nexit 1\n")
    qemu.chmod(0o755)
    done = run_vm(f"{ROOT}/tools/vm", tmp_path, "--qemu", qemu)
    assert done.returncode == 1 and done.stderr == (
        "tools/vm: --oracle needs the QEMU with plugins that build/oracle.so was made for, "
        f"not {qemu}: {qemu}: -plugin: invalid option\n"), done


def test_bad_files(tmp_path):
    file = oracle(tmp_path, "true")
    text = file.read_text()
    other = tmp_path / "other"
    other.write_text(re.sub(r"^kernel \w+", "kernel " + "0" * 40, text, flags=re.MULTILINE))
    done = subprocess.run([STROBE, "report", other], capture_output=True, text=True)
    assert "[kernel]: it was build id 0000" in done.stderr, done
    # The proof needs no names, but the wrong kernel is told.
    done = subprocess.run([STROBE, "exact", other], capture_output=True, text=True)
    assert done.returncode == 0 and ": difference 0\n" in done.stdout, done
    assert re.search(r"\[kernel\]: it was build id 0{40}, and \S+ has \w{40}; addresses",
                     done.stderr), done
    bad = tmp_path / "bad"
    for content in (text[:len(text) // 2], text.replace("run ", "run x", 1),
                    "oracle 1\nnonsense\n", text.split("\nroot")[0] + "\n"):
        bad.write_text(content)
        done = subprocess.run([STROBE, "exact", bad], capture_output=True, text=True)
        assert done.returncode == 1 and str(bad) in done.stderr, done
