"""Adds a system call, a device and a sample source as README.md says: a line in the
table and its handler; one file; one file. Adds a column of top by CONTRIBUTING.md's diff."""
import glob
import json
import re
import subprocess

from machine import PATIENCE, ROOT, vm
from test_make import Tree

CALL = "SYSCALL(1003, answer, word(question), user(answer))\n"
HANDLER = """
s32 sys_answer(u32 question, u32 answer)
{
    u32 result = question * 6;
    return copy_to_user(answer, &result, sizeof(result));
}
"""
PROGRAM = """
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    unsigned answer = 0;
    long result = syscall(1003, 7, &answer);
    printf("%ld %u\\n", result, answer);
    result = syscall(1003, 7, 16);
    printf("%ld %d\\n", result, errno == EFAULT);
}
"""
DEVICE = """
#include "kernel/fs/devfs.h"
#include "kernel/fs/file.h"

static int read_answer(struct file *f UNUSED, struct io *io, u64 *pos UNUSED)
{
    size_t n = MIN(io->left, (size_t)3);
    int err = io_to(io, "42\\n", n);
    return err ? err : (int)n;
}

static const struct file_ops answer_ops = { .read = read_answer };
static const struct char_device answer_device = {
    .name = "answer",
    .rdev = DEVICE_NUMBER(240, 0),
    .mode = 0444,
    .ops = &answer_ops,
};
CHAR_DEVICE(answer_device);
"""
SOURCE = """
#include "arch/cpu.h"
#include "kernel/profile/sample.h"
#include "kernel/profile/ticker.h"

static const struct sample_source boot_cpu_source;
static struct ticker ticker;

static void tick(struct ticker *t UNUSED, u32 ticks)
{
    struct sample_hit hit = { this_cpu()->irq_frame, ticks,
                              (u64)ticks * ticker.period, rdtsc() };
    sample_take_irq(&boot_cpu_source, &hit);
}

static void start_here(void *arg UNUSED)
{
    ticker_start(&ticker, clock_now_ns() + ticker.period, false);
}

static int start(const struct sample_source *s UNUSED, struct sample_rate *rate)
{
    ticker.period = (u32)NSEC_PER_SEC / rate->hz;
    ticker.fn = tick;
    rate->random = false;
    rate->period = ticker.period;
    smp_call_boot_cpu(start_here, NULL);
    return 0;
}

static void stop(const struct sample_source *s UNUSED)
{
    ticker_stop(&ticker);
}

static const char *why_not(const struct sample_source *s UNUSED)
{
    return NULL;
}

static const struct sample_source boot_cpu_source = {
    .name = "boot-cpu",
    .rank = 1,
    .min_hz = 1,
    .max_hz = 20000,
    .why_not = why_not,
    .start = start,
    .stop = stop,
};
SAMPLE_SOURCE(boot_cpu_source);
"""
SCRIPT = """answer && head -c 3 /dev/answer && profile --list | grep boot-cpu &&
profile -s boot-cpu --json tester"""


def add_all(tree):
    table = tree.read("include/strobe/syscalls.def").decode()
    last = table.index("SYSCALL(1002,")
    tree.write("include/strobe/syscalls.def", table[:last] + CALL + table[last:])
    handlers = tree.read("kernel/syscall/sys_sysinfo.c").decode()
    tree.write("kernel/syscall/sys_sysinfo.c", handlers + HANDLER)
    tree.write("kernel/fs/answer.c", DEVICE)
    tree.write("kernel/profile/boot_cpu_source.c", SOURCE)


def test_a_call_a_device_and_a_source_are_added(tmp_path):
    tree = Tree(tmp_path)
    tree.share_objects()
    add_all(tree)
    for goals in ("docs",), ("-j2", "build/kernel.elf"):
        done = tree.make(*goals, CI="true")
        assert done.returncode == 0, done
    assert "| 1003 | answer | question, *user* answer |  |" in \
        tree.read("docs/syscalls.md").decode()
    tree.write("answer.c", PROGRAM)
    (tmp_path / "out/bin").mkdir(parents=True)
    subprocess.run([f"{ROOT}/tools/cc", f"{tree.path}/answer.c", "-o",
                    f"{tmp_path}/out/bin/answer"], check=True, timeout=PATIENCE)
    result = vm(SCRIPT, "--kernel", f"{tree.path}/build/kernel.elf", "--add",
                f"{tmp_path}/out", "--icount", "1", smp=1)
    assert result.status == 0, result
    call, bad, device, listed, report = result.output.split("\n", 4)
    assert (call, bad, device) == ("0 42", "-1 1", "42"), result
    assert listed.split()[0] == "boot-cpu", result
    found = json.loads(report)
    assert found["source"] == "boot-cpu" and found["taken"] > 300, result


def build_top(tree, out):
    return subprocess.run(
        [f"{ROOT}/tools/cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread",
         f"-I{tree.path}", *glob.glob(f"{tree.path}/user/top/*.c"),
         f"{ROOT}/build/libstrobe.a", "-lm", "-o", out],
        capture_output=True, text=True, timeout=PATIENCE)


def test_a_column_of_top_is_added(tmp_path):
    tree = Tree(tmp_path)
    with open(f"{ROOT}/CONTRIBUTING.md") as file:
        diff = re.search(r"(?:^    (?:---|\+\+\+|@@|[-+ ] ).*\n)+", file.read(), re.MULTILINE)
    text = re.sub("^    ", "", diff[0], flags=re.MULTILINE)
    done = subprocess.run(["patch", "-p1", "--fuzz=0"], input=text, cwd=tree.path,
                          capture_output=True, text=True)
    assert done.returncode == 0, done
    (tmp_path / "out/bin").mkdir(parents=True)
    done = build_top(tree, f"{tmp_path}/out/bin/top")
    assert done.returncode == 0, done
    result = vm("top -b -n 1 -d 0.1 -v syscalls; top --json -n 1 -d 0.1 "
                "-v syscalls -o error_rate", "--add", f"{tmp_path}/out", "--icount", "1",
                smp=1)
    titles = re.search(r"^ *Num .*", result.output, re.MULTILINE)
    assert result.status == 0 and titles[0].split()[4:6] == ["Errors", "Err/s"], result
    rows = json.loads(result.output.splitlines()[-1])["rows"]
    assert rows and all(row["error_rate"] >= 0 for row in rows), rows
    # Without its value it is no column.
    source = tree.read("user/top/views.c").decode()
    value = r", *\\\n *per_second\(grown\(old->errors, s->errors\), ns\)"
    tree.write("user/top/views.c", re.sub(value, "", source))
    done = build_top(tree, f"{tmp_path}/top")
    assert done.returncode != 0 and "CELL" in done.stderr, done
