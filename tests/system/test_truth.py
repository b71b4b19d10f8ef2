"""The profiler against known results: call chains at every instruction, shares of
functions and of sections with interrupts off. All under --icount, where a run repeats
to the instruction."""
import json
import math
import re
import subprocess

import pytest

from machine import ROOT, vm
from shares import SHARES, by_chance, samples
from statistic import FALSE_ALARM, TICKS, chi_square, chi_square_bound, deviations
from tiers import drawn, side_by_side

CHAINS = f"{ROOT}/build/guest/chains"
KERNEL = f"{ROOT}/build/kernel.elf"
VDSO = f"{ROOT}/build/kernel/vdso.so"
FAST = ("--icount", "3")  # 8 ns an instruction: a sample every 6,250
PADDING = re.compile(r"(data16 |cs )*(nop|xchg +%ax,%ax|mov +%esi,%esi|"
                     r"lea +(%cs:)?(0x0)?\(%(e.i)(,%eiz,1)?\),%\5)")
FRAME = re.compile(r"push|pop|leave|ret|mov +%esp,%ebp|mov +%ebp,%esp")


def instructions(program, function):
    """{address: text} of a function's instructions."""
    code = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", program], text=True,
        capture_output=True, check=True).stdout
    body = re.search(rf"^[0-9a-f]+ <{function}>:\n(.*?)\n(\n|\Z)", code,
                     re.MULTILINE | re.DOTALL)[1]
    found = re.findall(r"^\s*([0-9a-f]+):\s+(.*)", body, re.MULTILINE)
    return {int(at, 16): text for at, text in found if not PADDING.match(text)}


# The program checks each sample's chain (tests/guest/chains.c); the test checks that
# every instruction was sampled.
@pytest.mark.parametrize("kind,samples,program,functions", [
    ("calls", 30000, CHAINS, ("leaf", "middle", "sized", "aligned", "bare",
                              "calls_bare", "copier", "setter")),
    ("entries", 20000, KERNEL, ("syscall_entry_point", "trap_return")),
    ("wrappers", 20000, VDSO, ("__kernel_vsyscall",)),
    ("faults", 50000, KERNEL, ("exception_common", "trap_return")),
])
def test_chain_at_every_instruction(kind, samples, program, functions):
    result = vm(f"/test/chains {kind} {samples}", *FAST, smp=1)
    assert result.status == 0, result
    hit = {int(at, 16)
           for at in re.findall(r"^at \S+ (\w+)", result.output, re.MULTILINE)}
    for function in functions:
        missed = [text for at, text in instructions(program, function).items()
                  if at not in hit]
        assert not missed, (function, missed)
    if kind == "calls":  # some of the libc's paths are for other machines
        for function in ("memcpy", "memset"):
            missed = [text for at, text in
                      instructions(CHAINS, function).items()
                      if at not in hit and FRAME.match(text)]
            assert not missed, (function, missed)


@drawn
def test_chains_through_signals():
    """Chains pass through nested signal handlers, also while they return."""
    result = vm("/test/chains signals 10000", *FAST, smp=1)
    assert result.status == 0, result


@pytest.mark.parametrize("smp", (side_by_side(2), side_by_side(4)))
def test_chains_on_several_cpus(smp):
    """Chains are right on several CPUs. (-icount might starve the sampler there.)"""
    result = vm("/test/chains", smp=smp)
    assert result.status == 0, result


EDGE = 0.003  # allows for a program's start and end, of 10,000 samples
SWITCHES = 0.01  # of a turn of 1 ms: into the handler, to idle and back

# With 130,000 samples, shares that are wrong by one twentieth give a chi-square of 300
# or more, with a standard deviation of 35.
ROUNDS = 800
CHI_SQUARE_4 = chi_square_bound(4)


@drawn
@pytest.mark.parametrize("options", ("", "-R", "--fixed", "-s lapic"))
def test_shares_of_functions(options):
    """Functions of known numbers of instructions have their shares of the samples; the
    test rejects other shares. (test_ratio of test_profile tests several CPUs, on which
    QEMU would decide the number of samples here. The rings hold all samples: with this
    clock the profiler may not be scheduled.)"""
    result = vm(f"profile {options} -F 20000 -m 8 --json /test/shares {ROUNDS}",
                *FAST, smp=1)
    assert result.status == 0, result
    report = json.loads(result.output[result.output.index("{\n"):])
    found = samples(report["rows"])
    assert report["lost"] == 0 and report["throttled"] == 0, report
    assert chi_square(found, SHARES) < CHI_SQUARE_4, found
    for i in range(len(SHARES)):
        wrong = [share + (i == n) for n, share in enumerate(SHARES)]
        assert chi_square(found, wrong) > CHI_SQUARE_4, (found, wrong)


@drawn
@pytest.mark.parametrize("source", ("nmi-hpet", "lapic"))
def test_random_distances(source):
    """Random distances average one period, although a sample takes 6 % of one."""
    result = vm(f"profile -s {source} -F 20000 -m 5 --json tester 400",
                *FAST, smp=1)
    assert result.status == 0, result
    report = json.loads(result.output[result.output.index("{\n"):])
    assert report["random"], report
    ticks = sum(report[column] for column in TICKS)
    periods = report["elapsed_ns"] / (1e9 / report["rate_hz"])
    chance = deviations() / math.sqrt(periods)
    assert abs(ticks / periods - 1) < chance < 0.04, (chance, report)


@drawn
def test_code_with_interrupts_off():
    """Code with interrupts off, a quarter of the time, is sampled in place by NMI; else
    its samples are at the instruction after the one that enables interrupts."""
    tests = ("profile_sees_code_with_interrupts_off,"
             "profile_by_interrupts_piles_up_behind_enabling_them")
    result = vm(None, "--console", "--kargs", f"test={tests}", "--icount", "1",
                smp=1)
    assert result.status == 0, result
    lines = re.findall(
        r"irqs off: (\S+): (\d+) off, (\d+) on, (\d+) behind", result.output)
    seen = {source: tuple(int(n) for n in counts) for source, *counts in lines}
    off, on, behind = (n / sum(seen["nmi-hpet"]) for n in seen["nmi-hpet"])
    assert abs(off - 0.25) < 0.01 and behind < 0.01, seen
    off, on, behind = (n / sum(seen["lapic"]) for n in seen["lapic"])
    assert off == 0 and abs(behind - 0.25) < 0.05, seen


@drawn
@pytest.mark.parametrize("source", ("nmi-hpet", "lapic"))
def test_expected(source):
    """The ticks are as many as expected, although sampling takes 5 % of the time: those
    due during it are counted, too. How many of all ticks come outside of the program is a
    matter of the draw."""
    result = vm(f"profile -s {source} -F 20000 -g -m 5 --json tester 60",
                "--icount", "1", smp=1)
    assert result.status == 0, result
    report = json.loads(result.output[result.output.index("{\n"):])
    assert report["taken"] > 6500 and report["missed"] == 0, report  # 7300 on average
    came = report["taken"] + report["in_sampling"]
    ticks = came + report["others"]
    chance = deviations() * math.sqrt(came * report["others"] / ticks)
    assert chance < 0.02 * ticks, report
    assert report["in_sampling"] > 100, report
    assert abs(came - report["expected"]) < chance, report


CHECKED = """
profile --json -F 16000 dd if=/dev/zero of=/dev/null bs=1 count=50000 2>/dev/null
profile --json -F 16000 -g -C sh -c "ls -lR /bin; sleep 0.01" | sed '1,/^{/{/^{/!d}'
sprofile --json -F 8000 sh -c "ls -lR / 2>&1; usleep 100000" | sed '1,/^{/{/^{/!d}'
profile --json -s lapic dd if=/dev/zero of=/dev/null bs=1 count=100000 2>/dev/null
profile --json --fixed -F 20000 /test/call_share read 100 | sed '1,/^{/{/^{/!d}'
"""


@drawn
def test_check():
    """Each report compares its samples with the ledger: those at random distances by NMI
    agree; those that see no code with interrupts off, or run in step, do not."""
    result = vm(CHECKED, *FAST, smp=1)
    assert result.status == 0, result
    text, reports = result.output, []
    while text.strip():
        report, end = json.JSONDecoder().raw_decode(text.lstrip())
        reports.append(report)
        text = text.lstrip()[end:]
    checks = [report["check"] for report in reports]
    chances = [check["p"] for check in checks]
    # (Of the least certain, by lapic, the mean is 1e-17: 0.001 is six deviations from it.)
    assert min(chances[:3]) > FALSE_ALARM and max(chances[3:]) < 0.001, checks
    assert checks[2]["idle"][1] > 0.3, checks
    for report, check in zip(reports, checks):
        sampled = (report["kernel"] + report["irq"]) / report["taken"]
        assert abs(sampled - check["kernel"][0]) < 1e-5, (report, check)


@drawn
def test_modes():
    """A handler and a thread have a quarter of the samples each, idle the rest. By NMI
    both are sampled; only the handler's samples are marked as interrupts off."""
    result = vm(None, "--console", "--kargs",
                "test=profile_tells_handlers_threads_and_idle_apart",
                "--icount", "1", smp=1)
    assert result.status == 0, result
    counts = re.search(r"modes: nmi-hpet: (\d+) irq, (\d+) kernel, (\d+) idle, "
                       r"(\d+) off", result.output)
    irq, kernel, idle, off = (int(n) for n in counts.groups())
    whole = irq + kernel + idle
    assert whole >= 4000, counts
    for found in irq, kernel, off:
        assert abs(found / whole - 0.25) < by_chance(0.25, whole) + SWITCHES, counts


@drawn
def test_who_sleeps_before_each_tick():
    """A program that sleeps at every tick of the rate has samples in proportion to its
    run time: the phase in each millisecond is random."""
    result = vm("profile --json /test/hides 2000", *FAST, smp=1)
    assert result.status == 0, result
    report = json.loads(result.output[result.output.index("{\n"):])
    expected = report["expected"]
    assert 1400 < expected < 1800, report
    chance = deviations() * math.sqrt(expected * (1 - expected / 2000))
    assert abs(report["taken"] - expected) < chance, (chance, report)
    assert chance < 0.2 * expected  # never or always sampled would be more


@drawn
@pytest.mark.parametrize("call,rounds", (("read", 200), ("getppid", 3400)))
def test_share_of_the_kernel_in_a_loop_of_calls(call, rounds):
    """Sampling does not keep step with a loop of one system call: the kernel's share of
    the samples is that which the program measured."""
    result = vm(f"/test/call_share {call} 1 | head -n 1;"
                f"profile -F 20000 -m 5 --json /test/call_share {call} {rounds}",
                *FAST, smp=1)
    assert result.status == 0, result
    share = float(re.search(r"kernel share ([0-9.]+)", result.output)[1])
    report = json.loads(result.output[result.output.index("{\n"):])
    assert report["taken"] > 9000 and report["lost"] == 0, report
    chance = by_chance(share, report["taken"]) + EDGE
    found = report["kernel"] / report["taken"]
    assert abs(found - share) < chance, (found, share, chance)


@pytest.mark.parametrize("call,option", (("getppid 1500", ""), ("read 200", "-g")))
def test_ledger_in_a_loop_of_calls_under_sampling(call, option):
    """A fifth of such a loop is entries and exits. NMIs there leave the ledger's user
    share as it is, as what the check compares it with: before they were told from those
    in the program, 20,000 a second of this CPU changed it by 0.2 to 0.5 percent. (The
    profiler's own turns on the CPU make 0.06 percent of the second.)"""
    shares = []
    for rate in (500, 20000):
        result = vm(f"profile -F {rate} {option} -m 5 --json /test/call_share {call}",
                    *FAST, smp=1)
        assert result.status == 0, result
        report = json.loads(result.output[result.output.index("{\n"):])
        shares.append(report["check"]["user"][1])
    assert report["taken"] > 4000, report
    assert abs(shares[1] - shares[0]) < 0.001, shares


def tree_of(program, rounds, option):
    result = vm(f"profile {option} -F 5000 -m 2 --json /test/{program} {rounds}",
                *FAST, smp=1)
    assert result.status == 0, result
    report = json.loads(result.output[result.output.index("{\n"):])
    assert report["lost"] == 0 and report["taken"] > 1000, report
    return report


def calls(nodes, caller=None):
    for node in nodes:
        yield caller, node["name"].split()[0], node["total"]
        yield from calls(node["calls"], node["name"].split()[0])


def test_code_without_frame_pointers():
    """Callers of code without frame pointers are found with -g=dwarf's stack copy; else
    they are reported as unknown, and none is invented."""
    whole = {("main", "outer"), ("outer", "middle"), ("middle", "inner")}
    report = tree_of("frameless", 100, "-g=dwarf")
    links = {(caller, name): n for caller, name, n in calls(report["tree"])}
    # Around the realignment of a stack only %edi has the frame, which no sample has: 7 of
    # the 400,000 instructions of a round, so that 5 samples there have 1e-10.
    assert report["cut"] < 5, report
    for link in whole:
        assert links[link] > 0.97 * report["taken"], links

    report = tree_of("frameless", 100, "-g")
    assert report["cut_broken"] > 0.95 * report["taken"], report
    for caller, name, _ in calls(report["tree"]):
        if name in ("outer", "middle", "inner"):
            assert (caller, name) in whole or caller == "[callers", caller


def test_code_that_nothing_is_known_of():
    """Code without any call information has no false caller or root; this is reported."""
    report = tree_of("no_cfi", 100, "-g")
    assert report["cut_broken"] > 0.95 * report["taken"], report
    for caller, name, _ in calls(report["tree"]):
        assert name != "[unknown]", report
        if name in ("outer", "middle", "inner"):
            assert caller in ("[callers", "main", "outer", "middle"), caller
