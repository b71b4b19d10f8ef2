"""tools/vm: output, status and files of commands, and its own statuses."""
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from machine import PATIENCE, ROOT, VM, Console, batch, vm
from tiers import realtime


def test_output_errors_and_status():
    result = vm("echo out; echo err >&2; exit 7")
    assert (result.status, result.output) == (7, "out\n"), result
    assert result.errors == "err\n", result


def test_output_is_exact():
    """Output is exact: every byte value, and more than any buffer."""
    done = subprocess.run(
        [VM, "--", "i=0; while [ $i -lt 256 ]; do printf"
         " \"\\\\$(printf %o $i)\"; i=$((i+1)); done; seq 100000"],
        capture_output=True, timeout=PATIENCE)
    expected = bytes(range(256)) + b"".join(
        b"%d\n" % i for i in range(1, 100001))
    assert done.stdout == expected
    assert done.returncode == 0


def test_make_run_keeps_the_command():
    """make run passes the command unexpanded to the guest's shell. (make has one status
    for all failures; it prints the command's.)"""
    command = 'echo "$(echo a  b)" $((6*7)) \'$x\' "${HOME}"; exit 7'
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith("MAKE")}
    done = subprocess.run(
        ["make", "-s", "-C", ROOT, "run", f"CMD={command}"], env=environment,
        stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.stdout == "a b 42 $x /root\n", done
    assert done.returncode == 2 and "Error 7" in done.stderr, done


@pytest.mark.parametrize("options", [
    ["--smp", "0"], ["--smp", "-1"], ["--smp", "two"], ["--smp", "1000"],
    ["--mem", "0"], ["--mem", "much"], ["--icount", "11"], ["--gdb", "99999"],
    ["--timeout", "-1"], ["--timeout", "nan"], ["--qemu-args", "'"],
    ["--get", "/dev/null"], ["--get", "/dev/null/x"], ["--add", "/dev/null"],
    ["--console-log", "/dev/null/x"], ["--console"], ["--line"],
    ["--qemu", "/nosuch"], ["--kernel", "/nosuch"], ["--nosuch"]])
def test_bad_options_are_reported_before_anything_runs(options):
    done = subprocess.run([VM, *options, "--", "true"], timeout=PATIENCE,
                          capture_output=True, text=True)
    assert done.returncode in (1, 2) and done.stdout == "", done
    last = done.stderr.splitlines()[-1]
    assert last.startswith("tools/vm:") and "Traceback" not in done.stderr
    assert options[0] in last or options[-1] in last, last


def test_no_command():
    for command in [], [""], [" "]:
        done = subprocess.run([VM, "--", *command], timeout=PATIENCE,
                              capture_output=True, text=True)
        assert done.returncode == 2 and "no command" in done.stderr, done


def test_arguments_are_kept():
    done = subprocess.run([VM, "--", "printf", "[%s]", "a b", "$HOME", "'"],
                          capture_output=True, timeout=PATIENCE)
    assert done.stdout == b"[a b][$HOME][']"


def test_arguments_for_the_kernel_and_qemu_add_up():
    done = subprocess.run([VM, "--qemu-args", "-snapshot", "--kargs",
                           "clocksource=pit", "--qemu-args",
                           "-machine hpet=off",
                           "--kargs", "timer=pit", "--",
                           "sysinfo kernel.cmdline; sysinfo system.clock"],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert "clocksource=pit timer=pit" in done.stdout, done
    assert "the firmware names none" in done.stdout, done


def test_status_of_a_signal():
    assert vm("kill -9 $$").status == 128 + signal.SIGKILL
    assert vm("kill -SEGV $$").status == 128 + signal.SIGSEGV


def until_it_hangs(command, **options):
    """Runs a command until it hangs, with time enough on a slow host."""
    for seconds in 10, PATIENCE // 3:
        result = vm(f"echo before; {command}", timeout=seconds, **options)
        if result.output:
            break
    return result


# In virtual time a sleeping machine wakes at once.
@realtime()
def test_time_out():
    result = until_it_hangs("sleep 1000")
    assert result.status == 124, result
    assert result.output == "before\n"
    assert "again with: tools/vm" in result.errors


def test_a_hang_is_noticed_and_shown():
    result = until_it_hangs("while true; do true; done", smp=1)
    assert result.status == 124, result
    assert "CPU 0: eip" in result.errors
    assert re.search(r"no end within \d+ s: CPU 0 0x0.* in ring 3",
                     result.problem), result


@realtime()
def test_a_silent_machine_is_stopped():
    """A silent machine is stopped; the report shows which calls led to its sleep."""
    result = vm("for i in 1 2 3 4; do echo $i; sleep 1; done; sleep 100",
                "--silence", "8", smp=1)
    assert result.status == 124, result
    assert result.output == "1\n2\n3\n4\n", result
    assert result.problem == "not a word for 8 s: CPU 0 halted", result
    assert re.search(r"^  [c-e]\w{7} kernel_main\+", result.errors,
                     re.MULTILINE), result


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def children(pid):
    """{name: pid} of the processes that it started and that have not ended."""
    found = {}
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found[pathlib.Path(f"/proc/{child}/comm").read_text().strip()] = int(child)
    return found


def has_ended(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] in "ZX"


def test_nothing_is_left_of_a_machine_that_is_killed(tmp_path):
    """QEMU ends with a tools/vm that SIGKILL ends, and its folder is removed; others'
    stay."""
    machines = []
    for _ in range(2):
        before = set(tmp_path.iterdir())
        machine = subprocess.Popen(
            [VM, "--", "echo up; mkfifo /tmp/x; cat /tmp/x"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)})
        assert machine.stdout.readline() == b"up\n"
        [folder] = set(tmp_path.iterdir()) - before
        [qemu] = [pid for name, pid in children(machine.pid).items() if "qemu" in name]
        machines.append((machine, folder, qemu))
    (killed, its, qemu), (other, folder, others) = machines
    killed.kill()
    killed.wait()
    until(lambda: has_ended(qemu) and not its.exists())
    assert folder.exists() and not has_ended(others)
    other.terminate()
    assert other.wait() == 128 + signal.SIGTERM
    assert not folder.exists() and has_ended(others)


def test_nothing_is_left_of_a_fuzzer_that_is_killed(tmp_path):
    """Neither its machine, nor the folders of both."""
    fuzzer = subprocess.Popen(
        [f"{ROOT}/tools/fuzz", "--smp", "1", "--calls", "100000000"], text=True,
        stdin=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(tmp_path)})
    until(lambda: children(fuzzer.pid).get("vm") and
          any("qemu" in name for name in children(children(fuzzer.pid)["vm"])))
    machine = children(fuzzer.pid)["vm"]
    [qemu] = [pid for name, pid in children(machine).items() if "qemu" in name]
    assert len(list(tmp_path.iterdir())) == 2
    fuzzer.kill()
    fuzzer.wait()
    until(lambda: has_ended(machine) and has_ended(qemu) and not list(tmp_path.iterdir()))


def test_panic():
    """The end of init is a panic."""
    result = vm("true", "--kargs", "init=/bin/true")
    assert result.status == 125, result
    assert result.problem == "the kernel panicked: init ended with status 0"
    assert "| KERNEL PANIC: " in result.errors, result
    assert "again with: tools/vm" in result.errors, result


@realtime()
def test_panic_among_samples():
    """A panic stops the other CPUs by NMI, also while NMIs take samples."""
    with Console("--kargs", "init=/bin/sh", smp=4, prompt="# ") as console:
        for line in ("sprofile -s nmi-hpet -F 8000 sleep 100 >/dev/null &",
                     "while true; do true; done &", "busybox sleep 1"):
            console.command(line)
        console.send("exit 7\r")
        report = console.wait_for("---[ end of panic ]---")
        assert "KERNEL PANIC: init ended with status 0x700" in report
        assert "task_exit" in report, report
        assert "has not stopped" not in report, report


@pytest.mark.parametrize("command", (
    "echo before; poweroff -f; exit 3",    # does not wait for the command
    "echo before; stty 0 </dev/ttyS1; exit 3"))  # hangs up the line
def test_a_status_that_never_comes(command):
    result = vm(command)
    assert result.status == 126, result
    assert "no status of the command has come" in result.problem, result


def test_one_script_stops_the_machine():
    """If a script stops the machine, only that script fails."""
    results = batch({"before": "echo 1; echo 2 >&2; exit 3",
                     "stops": "echo lost; busybox reboot -f",
                     "after": "echo 4"})
    before, stops, after = (results[name] for name in list(results)[1:])
    assert (before.status, before.output, before.errors) == (3, "1\n", "2\n")
    assert stops.status is None and "was reset" in stops.problem, stops
    assert re.search(r"begin \d+, stops\n(power: .*\n)*$", stops.console), stops
    assert (after.status, after.output) == (0, "4\n")
    assert results[None].status == 0, results[None]


def test_all_scripts_stop_the_machine():
    results = batch({n: "busybox reboot -f" for n in "abcde"})
    problems = [results[n].problem for n in "abcde"]
    assert all("was reset" in problem for problem in problems), problems
    assert [problem.startswith("not begun: the machine stopped 3 times")
            for problem in problems] == [False] * 3 + [True] * 2, problems


def test_never_that_far():
    result = vm("true", "--kernel", f"{ROOT}/LICENSE")
    assert result.status == 126, result


def test_files_in_and_out(tmp_path):
    (tmp_path / "in/etc").mkdir(parents=True)
    (tmp_path / "in/etc/motto").write_text("festina lente\n")
    (tmp_path / "in/etc/run").write_text("#!/bin/sh\necho ran\n")
    os.chmod(tmp_path / "in/etc/run", 0o755)
    result = vm("mkdir /out/d; tr a-z A-Z </etc/motto >/out/d/motto;"
                " /etc/run", "--add", f"{tmp_path}/in", "--get",
                f"{tmp_path}/out")
    assert result.status == 0 and result.output == "ran\n", result
    assert (tmp_path / "out/d/motto").read_text() == "FESTINA LENTE\n"


def test_names_are_bytes(tmp_path):
    """Names in --add's folder and in the command are any bytes."""
    name = b"not utf-8 \xff"
    with open(os.path.join(os.fsencode(tmp_path), name), "w") as file:
        file.write("inside")
    result = vm(f"cat '/{os.fsdecode(name)}'", "--add", str(tmp_path))
    assert result.output == "inside", result


def test_deterministic(tmp_path):
    """Under --icount two runs are equal in every digit, whatever the times of --add's
    files."""
    command = "cat /proc/uptime; ps; cat /proc/interrupts; tester 1; cat /proc/uptime"
    runs = []
    for made in (0x6999_9999, 0x6aaa_aaaa, 0x6bcd_ef01):
        for name in map(str, range(100)):
            (tmp_path / name).touch()
            os.utime(tmp_path / name, (made, made))
        runs.append(vm(command, "--icount", "3", "--add", str(tmp_path), smp=1))
    first, *others = [(run.status, run.output, run.console) for run in runs]
    assert first[0] == 0, first
    assert others == [first, first]


def test_files_keep_their_time(tmp_path):
    """Files keep their time, except those later than the start of --icount's clock."""
    for name, made in (("old", 1_000_000_000), ("new", 1_800_000_000)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (made, made))
    result = vm("stat -c %Y /old /new", "--add", str(tmp_path), "--icount")
    assert result.output.split() == ["1000000000", "1767225600"], result


def test_x87_stores():
    """80-bit stores across a page boundary are right, also with a QEMU whose own are not
    (docs/install.md): the kernel does not warn, so the program tries them."""
    result = vm("/test/float_pages")
    assert result.output == "ok 80 bits across pages\n", result


def test_memory_that_is_kept(tmp_path):
    """A kept memory has the kernel at the machine's end, for tools/coverage."""
    result = vm("true", "--keep-memory", str(tmp_path), "--mem", "128")
    assert result.status == 0, result
    [kept] = tmp_path.iterdir()
    assert kept.stat().st_size == 64 << 20
    assert b"Strobe version" in kept.read_bytes()
