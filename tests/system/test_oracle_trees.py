"""The oracle's trees (docs/exact.md) of work whose instructions were counted by hand
(tests/guest/oracle_count.c), equal to the instruction."""
import collections

from machine import ROOT, vm
from oracle import functions, oracle, paths, proof, strobe

MAIN = "oracle_count;_start;_start;_start_c;libc_start_main_stage2;main"
RAISE = "raise;__restore_sigs;__syscall4_[i];__kernel_vsyscall"


def count_of(file, folder, function):
    """Instructions below a function, by path up to it."""
    found = collections.Counter()
    for path, count in paths(file, folder):
        if function in path:
            found[";".join(path[:path.index(function) + 1])] += count
    return found


def test_user_mode(tmp_path):
    """A loop of 2 instructions, begun and left by 2 more."""
    for n in (1, 100_001):
        file = oracle(tmp_path, f"/test/oracle_count user {n}")
        proof(file)
        assert count_of(file, tmp_path, "work_user") == {
            f"{MAIN};work_user": 2 * n + 2}


def test_kernel(tmp_path):
    """Each call costs the same, and sys_getpid has its instructions once a call."""
    cost = {}
    for n in (500, 501, 1000):
        file = oracle(tmp_path, f"/test/oracle_count calls {n}")
        proof(file)
        counts = count_of(file, tmp_path, "count_calls")
        assert list(counts) == [f"{MAIN};count_calls"]
        cost[n] = sum(counts.values())
    call = cost[501] - cost[500]
    # The loop's own: 4 before and after it.
    assert cost == {n: n * call + 4 for n in cost}, cost


def test_interrupts(tmp_path):
    """Of N expirations of a timer each instruction is counted N times, or never."""
    for n in (10, 11):
        file = oracle(tmp_path, f"/test/oracle_count interrupts {n}")
        proof(file)
        counts = {count for path, count in paths(file, tmp_path)
                  if path[1] == "interrupt_common_[k]" and
                  path[-2:] == ["expire_[k]", "signal_would_be_lost_[k]"]}
        assert counts == {n}


# Each loop has 2,002 instructions.
TREE = {
    "tree_longjmp;work_after_longjmp": 10,
    f"tree_signals;{RAISE};work_in_handler": 10,
    f"tree_signals;{RAISE};handler;work_in_handler": 10,
    f"tree_signals;{RAISE};handler;{RAISE};work_in_nested_handler": 10,
    "tree_signals;work_after_handler": 10,
    "tree_signals;work_after_jump_out": 10,
    "tree_tail_call;work_of_tail_call": 10,
    "tree_tail_call;work_after_tail_call": 10,
    "tree_threads;with_a_thread_[i];work_in_fork": 4,
    "tree_vfork;work_before_exec": 3,
    "tree_vfork;work_after_vfork": 3,
    "work_after_exec": 3,
}


def test_trees(tmp_path):
    """longjmp, signals, tail calls, tasks with a thread at the same stack address, vfork
    and exec: each loop has the path that the source has."""
    file = oracle(tmp_path, "/test/oracle_count tree")
    total, _ = proof(file)
    found = collections.Counter()
    for path, count in paths(file, tmp_path):
        for i, frame in enumerate(path):
            if frame.startswith("work_"):
                found[";".join(path[:i + 1])] += count
    expected = {f"{MAIN};{path}": 2002 * times for path, times in TREE.items()}
    expected["oracle_count;__clone;thread;work_in_thread"] = 2002 * 4
    assert found == expected
    firmware = sum(int(line.split()[0]) for line in
                   strobe("exact", "-n", "0", file).splitlines() if "firmware" in line)
    assert functions(file)["[unknown]"] - firmware <= total / 10_000


def test_double_fault(tmp_path):
    """The kernel's stack overflows before there is a program: the handler's path leads
    through the whole recursion."""
    kernel = f"{ROOT}/build/kernel-test.elf"
    file = tmp_path / "counts"
    result = vm("true", "--kernel", kernel, "--kargs", "plant=deep-recursion", "--oracle",
                str(file), "--icount", "0", smp=1)
    assert "kernel stack overflow" in result.console, result
    # (The clock is compared on returns to user mode only.)
    text = strobe("exact", "-k", kernel, file, status=1)
    counted, executed = [int(text.split()[i]) for i in (0, 5)]
    assert counted == executed > 10_000_000, text
    strobe("export", "-k", kernel, "--folded", "-o", tmp_path / "folded", file)
    handlers = [line for line in (tmp_path / "folded").read_text().splitlines()
                if "double_fault_[k]" in line]
    assert handlers and all(line.count("recurse_[k];") > 50 for line in handlers), handlers
