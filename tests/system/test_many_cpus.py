"""More CPUs than a word has bits: all tools on 64, whose books balance on each; APIC
ids with holes."""
import collections
import os
import re
import subprocess

import pytest

from machine import ROOT, batch, vm
from monitor import debugged

CPUS = 64
# Under -icount CPUs that compute take turns of the host's, so these tests have few.
KERNEL_TESTS = ("arch_calls_reach_every_cpu,arch_calls_reach_any_set,arch_calls_from_all_sides,"
                "arch_cpus_know_themselves,arch_nmis_are_counted,affinity_is_kept,"
                "timer_reaches_all_cpus,audit_balances_under_load,mm_threads_fault_in_one_space,"
                "mm_shootdown_reaches_cpus_of_each_word")
COMPUTE = "i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); done"
LAST = f"taskset {1 << (CPUS - 1):x}"
SCRIPTS = {
    "nproc": "nproc",
    "programs": "/test/many_cpus",
    "affinity": f"{LAST} sh -c 'grep Cpus_allowed /proc/self/status;"
                " sysinfo system.threads.$$ | grep -w affinity'",
    "profile": f"{LAST} profile sh -c '{COMPUTE}'",
    "sprofile": "sprofile --help >/dev/null; sprofile sh -c 'sleep 0.2'",
    "trace": f"trace record -o t {LAST} sh -c '{COMPUTE}' && trace report -c {CPUS - 1} t |"
             " grep -c sched/switch",
    "rings": "trace record -b 16384 -o t2 true",
    "top": "top -b -n 1",
    "tasks": "tasks -c",
    "interrupts": "head -1 /proc/interrupts | wc -w; grep -c ^cpu /proc/stat",
    "audit": "stats --audit",
    "problems": "dmesg | grep -iE 'hang|again|does not answer|not used|left out'; free | grep Mem",
}


@pytest.fixture(scope="module")
def outputs():
    return batch(SCRIPTS, smp=CPUS)


def audited(output):
    """The audit's rows of CPUs: {CPU: differences}."""
    return {row[0]: [int(row[4]), int(row[7])] for row in map(str.split, output.splitlines())
            if len(row) == 8 and row[1] == "all"}


def check_audit(output, cpus):
    rows = audited(output)
    assert sorted(map(int, rows)) == list(range(cpus)), output
    assert not any(sum(rows.values(), [])), output
    assert re.search(r"^all +user .* 0 .* 0$", output, re.MULTILINE), output
    assert re.search(r"^all +kernel .* 0 .* 0$", output, re.MULTILINE), output


def test_the_books_balance_on_each_cpu(outputs):
    assert outputs["nproc"].output.strip() == str(CPUS), outputs["nproc"]
    assert outputs["audit"].status == 0, outputs["audit"]
    check_audit(outputs["audit"].output, CPUS)
    assert outputs[None].status == 0, outputs[None]


def test_programs_use_all_cpus(outputs):
    run = outputs["programs"]
    assert run.status == 0 and run.output.startswith(f"{CPUS} CPUs\n"), run
    assert run.output.count("\nok ") == 5, run


def test_a_thread_is_bound_to_the_last_cpu(outputs):
    run = outputs["affinity"]
    assert re.search("^Cpus_allowed:\t80000000,00000000$", run.output, re.MULTILINE), run
    assert re.search(f"^Cpus_allowed_list:\t{CPUS - 1}$", run.output, re.MULTILINE), run


def test_profiles_have_all_cpus(outputs):
    for name in "profile", "sprofile":
        run = outputs[name]
        assert run.status == 0 and f" on {CPUS} CPUs" in run.output, run
        assert ", 0 lost, 0 unknown" in run.output, run


def test_events_of_the_last_cpu_are_traced(outputs):
    run = outputs["trace"]
    assert run.status == 0 and int(run.output) >= 2, run


def test_rings_of_all_cpus_have_addresses(outputs):
    """16 MiB for each CPU would be more than the kernel's addresses: they are smaller."""
    run = outputs["rings"]
    assert run.status == 0 and " records, in t2" in run.errors, run


def test_tools_list_all_cpus(outputs):
    for name, pattern in ("top", r"^cpu(\d+) "), ("tasks", r"^ *(\d+) "):
        run = outputs[name]
        found = [int(n) for n in re.findall(pattern, run.output, re.MULTILINE)]
        assert set(range(CPUS)) <= set(found), run
    assert outputs["interrupts"].output.split() == [str(CPUS), str(CPUS + 1)], outputs["interrupts"]


def test_no_cpu_is_missed_and_memory_is_for_those_that_exist(outputs):
    run = outputs["problems"]
    memory = run.output.splitlines()
    assert len(memory) == 1, run
    assert int(memory[0].split()[2]) < 12 * 1024, run  # KiB in use


def test_kernel_on_many_cpus():
    run = vm(None, "--console", "--kargs", f"quiet test={KERNEL_TESTS} seed=1", smp=CPUS)
    assert run.status == 0, run
    assert f"# {KERNEL_TESTS.count(',') + 1} passed, 0 failed, 0 skipped" in run.output, run


def numbers(text):
    """The members of a list, as in "0-1,3"."""
    ends = [part.split("-") for part in text.split(",")]
    return [n for end in ends for n in range(int(end[0]), int(end[-1]) + 1)]


def check_perf_has(places, path):
    """perf shows the topology: the CPUs of each package and core, and each CPU's."""
    text = subprocess.run(["perf", "--no-pager", "report", "-i", path, "--header-only", "-I"],
                          capture_output=True, text=True, check=True,
                          env={**os.environ, "PERF_CONFIG": "/dev/null"}).stdout
    for what, part in ("sockets", slice(1)), ("threads", slice(2)):
        wanted = collections.defaultdict(list)
        for cpu, place in enumerate(places):
            wanted[place[part]].append(cpu)
        lists = re.findall(rf"^# sibling {what} *: (.*)$", text, re.MULTILINE)
        assert [numbers(cpus) for cpus in lists] == list(wanted.values()), text
    found = re.findall(r"^# CPU (\d+): Core ID (\d+), Socket ID (\d+)$", text, re.MULTILINE)
    assert [tuple(map(int, row)) for row in found] == [
        (cpu, place[1], place[0]) for cpu, place in enumerate(places)], text


@pytest.mark.parametrize("topology, last, options", (
    ("36,sockets=6,cores=3,threads=2", (45, "5:2.1"), []),
    ("255", (254, "0:254.0"), ["--machine", "q35"])), ids=("sparse", "255"))
def test_apic_ids(topology, last, options, tmp_path):
    """APIC ids may have holes, and go up to 254. They are fields of bits: the package, the
    core in it, the hardware thread."""
    cpus = int(topology.split(",")[0])
    recorded = "sockets" in topology  # with all CPUs in one package there is little to see
    run = vm("grep -w apicid /proc/cpuinfo | tail -n 1; ls /sensors/sched | grep -c switch;"
             " tasks -c | tail -n 1;"
             f" {'tasks -c >/out/cpus; profile -o /out/p.data true >/out/p;' * recorded}"
             " /test/many_cpus && stats --audit",
             "--get", str(tmp_path), "--qemu-args", f"-smp {topology}", *options, smp=cpus)
    assert run.status == 0, run
    apic_id, place = last
    assert run.output.startswith(f"apicid\t\t: {apic_id}\n{cpus}\n"), run
    row = run.output.splitlines()[2].split()
    assert row[0] == str(cpus - 1) and row[9] == place, run
    check_audit(run.output, cpus)
    if recorded:
        rows = [line.split() for line in (tmp_path / "cpus").read_text().splitlines()]
        places = [tuple(map(int, re.split("[:.]", row[9]))) for row in rows if row[0].isdigit()]
        assert len(places) == cpus, rows
        check_perf_has(places, str(tmp_path / "p.data"))


# When the kernel looks, CPU 2 has not arrived; then it does.
LOOKS = "if (!READ_ONCE(slot->arrived))"
LATE = """
hbreak smp.c:{line}
continue
delete
set var slots[1].arrived = 0
"""


def test_a_late_cpu_stays_halted(tmp_path):
    """It is not used and does no harm: the others work, stop and power off."""
    with open(f"{ROOT}/arch/i386/cpu/smp.c") as source:
        line, = (n for n, text in enumerate(source, 1) if text.strip().startswith(LOOKS))
    gdb, run = debugged(tmp_path, "nproc; dmesg | grep smp:; stats --audit;"
                        " for cpu in 1 2 4; do taskset $cpu true; done",
                        LATE.format(line=line), smp=4)
    assert (gdb.returncode, run.status) == (0, 0), (gdb, run)
    assert run.output.startswith("3\n"), run
    assert "smp: the CPU with APIC id 2 does not answer\n" in run.output, run
    assert "smp: 3 CPUs\n" in run.output, run
    check_audit(run.output, 3)
