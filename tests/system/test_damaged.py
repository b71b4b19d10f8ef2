"""Damaged files: what reads them says what is wrong, and reads nothing beyond them."""
import concurrent.futures
import os
import random
import shutil
import subprocess
import zlib

import pytest

from damage import cases, damaged
from machine import PATIENCE, ROOT, vm

TOOL = f"{ROOT}/build/host/strobe"  # with AddressSanitizer and UBSan
FEW = 40           # cases of each kind in `make test`
MEMORY_MB = 1024   # for a file of some KiB
STATUSES = {0, 1}
# The tool is copied to a folder without programs' files, so that none is read for names.
MADE = {
    "samples": "profile -g -F 4000 -o /out/samples sh -c 'tester 1 | cat'",
    "events": "profile -e @sched/switch,@syscall/enter -g -o /out/events sh -c 'true | cat'",
    "trace": "trace record -1 -o /out/trace sh -c 'true | cat; ls'",
    "calls": "cprofile -F 'sys_*,kernel/fs/*' -o /out/calls ls",
    "arcs": "cprofile --arcs -F 'sys_*' -o /out/arcs ls",
    "sensors": "sensors record -o /out/sensors -i 0.001 /sensors/mm/free /sensors/syscall/duration"
               " -- ls -l",
}
EXPORTS = [["export", f"--{form}"] for form in (
    "folded", "speedscope", "pprof", "callgrind", "html")]
SHOWN = [["report"], ["report", "--by", "thread"], ["tree"], ["tree", "--inverted"], ["top"],
         ["lines"], ["counts"], ["counts", "--stacks"], ["repair"], ["kallsyms"],
         ["diff", "{good}"], *EXPORTS, ["export", "--firefox"],
         ["export", "--gmon", "-o", "{out}"]]
COUNTED = [["report"], ["tree"], ["report", "-c", "0"], ["diff", "{good}"], *EXPORTS]
COMMANDS = {
    "samples": SHOWN, "events": SHOWN, "calls": COUNTED,
    "arcs": [["report"], ["report", "-c", "0"], ["diff", "{good}"], ["export", "--folded"]],
    "trace": [["trace", "report"], ["trace", "summary"], ["trace", "--perfetto"],
              ["trace", "--trace-dat"], ["trace", "--ctf", "{out}"]],
    "sensors": [["sensors"]],
    "counted": [["exact"], ["calls", "{file}", "task_exit;...;*"], ["counts", "--stacks"],
                ["counts"], ["export", "--folded"]],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    run = vm(" && ".join(f"{command} >/dev/null" for command in MADE.values()), "--get",
             str(folder), smp=1)
    assert run.status == 0, run
    run = vm("true", "--oracle", str(folder / "counted"), "--icount", "0", smp=1)
    assert run.status == 0, run
    return folder


def sealed(data):
    """A file of cprofile whose checksum is right."""
    return data[:20] + zlib.crc32(data[24:]).to_bytes(4, "little") + data[24:]


def read_one(made, folder, kind, number):
    """The problem of a case, or None."""
    file, out = folder / f"{number}", folder / f"{number}.out"
    data = damaged(kind, number, (made / kind).read_bytes())
    file.write_bytes(sealed(data) if kind in ("calls", "arcs") and number % 8 else data)
    command = random.Random(f"command {kind} {number}").choice(COMMANDS[kind])
    words = [word.format(good=made / kind, out=out, file=file) for word in command]
    words += [] if "{file}" in command else [file]
    options = f"detect_leaks=0:hard_rss_limit_mb={MEMORY_MB}:allocator_may_return_null=1:" \
        f"max_allocation_size_mb={MEMORY_MB}"
    try:
        done = subprocess.run([folder / "strobe", *words], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE,
                              env={**os.environ, "ASAN_OPTIONS": options})
    except subprocess.TimeoutExpired:
        return f"case {number}, {words}: does not end"
    said = done.stderr.decode(errors="replace")
    wrong = done.returncode not in STATUSES or "Sanitizer" in said or "runtime error" in said
    silent = done.returncode != 0 and not said.startswith("strobe: ")
    if wrong or silent:
        return f"case {number}, {words}: status {done.returncode}\n{said[:3000]}"
    subprocess.run(["rm", "-rf", file, out], check=True)
    return None


@pytest.mark.parametrize("kind", COMMANDS)
def test_of_the_tool(made, kind, tmp_path):
    """What strobe reads on the host, in a build with sanitizers."""
    shutil.copy(TOOL, tmp_path / "strobe")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = list(filter(None, pool.map(
            lambda number: read_one(made, tmp_path, kind, number), range(cases(FEW)))))
    assert not problems, f"{len(problems)} problems\n" + "\n".join(problems[:5])
