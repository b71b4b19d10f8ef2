"""An NMI at each instruction of the kernel's entry and exit paths (entry.S): it changes
neither the interrupted program nor the accounting; as a sample it has the call chains
of the interrupted code."""
import re
import subprocess

from machine import ROOT
from monitor import debugged

KERNEL = f"{ROOT}/build/kernel.elf"
# The vectors of /test/entry_paths: breakpoint, invalid opcode, page fault, timer.
STUBS = (3, 6, 14, 0xe0)

# Runs from the start of a system call (NMIs use exit paths as well) to `at`, and
# raises an NMI before that instruction.
NMI = """
tbreak *{outer:#x}
continue
tbreak *{at:#x}
continue
monitor nmi
tbreak *{entry:#x}
continue
printf "NMI at %#x taken at %#x\\n", {at:#x}, *(unsigned int *)$esp
"""
# An NMI during an NMI at `at`: the second one stays pending until the first ends.
NMI_IN_NMI = NMI.replace("tbreak *{at", "monitor nmi\ntbreak *{at", 1)


def listing():
    """{symbol: [(address, instruction)]} of entry.S, without padding."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", KERNEL],
                          capture_output=True, text=True, check=True).stdout
    parts = {}
    for name, body in re.findall(r"^[0-9a-f]+ <([\w.]+)>:\n((?:.+\n)*)", text,
                                 re.MULTILINE):
        code = [(int(a, 16), i.strip()) for a, i in
                re.findall(r"^([0-9a-f]+):\t(.*)", body, re.MULTILINE)]
        # (kernel_exception is also a symbol of trap.c, which is further away.)
        parts.setdefault(name, []).append(code)
    return parts


def one(parts, name, *, whole=False):
    """The instructions of a symbol; up to its last jump unless `whole`."""
    stubs = parts["trap_stubs"][0][0][0]
    code = min(parts[name], key=lambda c: abs(c[0][0] - stubs))
    ends = [i for i, (_, text) in enumerate(code) if text.startswith("jmp")]
    return [a for a, _ in (code if whole or not ends else code[:ends[-1] + 1])]


def addresses():
    """Addresses of the paths, except for the repair of a frame that a user damaged, and
    early_* (taken only by a stopped clock); those of the NMI path; and the start of a
    system call."""
    parts = listing()
    stubs = parts["trap_stubs"][0]
    first = stubs[0][0]
    normal = [a for a, _ in stubs if (a - first) // 16 in STUBS]
    # A stub ends at its jump; the rest of its 16 bytes is padding.
    jumps = {(a - first) // 16: a for a, text in stubs if text.startswith("jmp")}
    normal = [a for a in normal if a <= jumps[(a - first) // 16]]
    for name in ("exception_common", "kernel_exception", "interrupt_common"):
        normal += one(parts, name)
    for name in ("syscall_entry_point", "to_user", "trap_return",
                 "strobe_syscall"):
        normal += one(parts, name, whole=True)
    in_nmi = one(parts, "nmi_entry_point") + one(parts, "trap_return", whole=True)
    return normal, in_nmi, parts["syscall_entry_point"][0][0][0]


# The same in a separate task, with the NMI as a tick of the sampler: a period of its
# tick grid appears to have passed. %d: bytes of the kernel stack in use.
SAMPLE = """
tbreak *{outer:#x} if cpus[0]->thread->task == $task
continue
tbreak *{at:#x} if cpus[0]->thread->task == $task
continue
printf "sample at %#x with %d\\n", {at:#x}, """ \
    """(unsigned)cpus[0]->thread->kstack + {stack} - (unsigned)$esp
set var *(unsigned long long *)&nmi_rtc_source.grid[0] -= """ \
    """nmi_rtc_source.period_cycles
monitor nmi
tbreak *{entry:#x}
continue
"""
SYNC = """
tbreak sys_sync
continue
set $task = cpus[0]->thread->task
"""
KSTACK_SIZE = 4 * 4096
TRAPFRAME_SIZE = 68  # of a frame at the stack's start: from user mode


def script(text, places, in_nmi, outer):
    return "".join(text.format(at=at, entry=in_nmi[0], outer=outer,
                               stack=KSTACK_SIZE) for at in places)


def test_an_nmi_at_each_instruction(tmp_path):
    normal, in_nmi, outer = addresses()
    nmis = len(normal) + 2 * len(in_nmi)
    gdb, result = debugged(
        tmp_path,
        "/test/entry_paths 100000000 & p=$!; until stats --errors --json |"
        f" grep -q '\"unexpected NMIs\", \"count\": {nmis},'; do"
        " usleep 50000; done; kill $p; wait $p; echo $?; stats --audit",
        script(NMI, normal, in_nmi, outer) +
        script(NMI_IN_NMI, in_nmi, in_nmi, outer))
    taken = [(int(at, 16), int(where, 16)) for at, where in re.findall(
        r"^NMI at (0x\w+) taken at (0x\w+)", gdb.stdout, re.MULTILINE)]
    print(f"{len(taken)} NMIs:", *(f"{at:x}" for at, _ in taken))
    assert taken == [(at, at) for at in normal] + \
        [(at, outer) for at in in_nmi], (taken, gdb.stderr)
    assert result.status == 0, result
    ended, audit = result.output.split("\n", 1)
    assert ended == "143", result  # SIGTERM: no register was wrong
    differences = re.findall(r"^ *\w+ +\w+ +\d+ +\d+ +(-?\d+)", audit, re.MULTILINE)
    assert differences and set(differences) == {"0"}, result


def test_a_sample_at_each_instruction(tmp_path):
    """A sample's chain begins at the instruction and goes on to the interrupted code: the
    kernel, if its stack is in use, and the program, whose callers /test/chains checks."""
    normal, in_nmi, outer = addresses()
    gdb, result = debugged(
        tmp_path, f"/test/chains ways {len(normal)}",
        SYNC + script(SAMPLE, normal, in_nmi, outer))
    made = [(int(at, 16), int(stack)) for at, stack in re.findall(
        r"^sample at (0x\w+) with (\d+)", gdb.stdout, re.MULTILINE)]
    assert result.status == 0, result
    assert [at for at, _ in made] == normal, (gdb.stdout, gdb.stderr)
    # The sampler's own ticks may come at any of the addresses, too.
    found = {(int(at, 16), int(entries) > 1) for at, entries in re.findall(
        r"^sample (\w+) (\d+)", result.output, re.MULTILINE)}
    in_kernel = [at for at, stack in made if stack > TRAPFRAME_SIZE]
    print(f"{len(made)} samples, {len(in_kernel)} in a kernel that was interrupted")
    assert in_kernel
    missing = [f"{at:x} with {stack}" for at, stack in made
               if (at, stack > TRAPFRAME_SIZE) not in found]
    assert not missing, (missing, result)


def test_each_cmpxchg8b_is_behind_clc():
    """Otherwise it makes garbage of the kernel's flags in QEMU 7.2 (docs/install.md)."""
    code = [text for part in listing().values() for body in part for _, text in body]
    before = [code[i - 1] for i, text in enumerate(code)
              if "cmpxchg8b" in text]
    assert len(before) > 10, before
    assert set(before) == {"clc"}, before
