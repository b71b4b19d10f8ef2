"""make's output, its number of jobs, and its behaviour when interrupted, on a full disk
or in a read-only folder. Runs in a copy of the tree, with fake compilers where they are
enough."""
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess

import pexpect
import pytest
import pyte

import i386
from machine import (ANSWER_PATIENCE, COLUMNS, PATIENCE, PROMPT, ROOT, ROWS,
                     VM)
from shared_objects import copy_objects

CROSS_GCC = "i686-linux-gnu-gcc"
OBJECT = "build/kernel/lib/date.c.o"
FOUR = ("date", "tree", "bintime", "records")
WARNS = "static int unused;\n"


def environment(**more):
    """The environment without an outer make's variables."""
    kept = {name: value for name, value in os.environ.items()
            if name not in ("CI", "WERROR") and not name.startswith("MAKE")
            and name != "MFLAGS"}
    return {**kept, "TERM": "vt100", **more}


class Tree:
    """A copy of the sources whose packages are marked as installed."""

    def __init__(self, folder):
        self.path = str(folder / "tree")
        self.fakes = str(folder / "fakes")
        os.mkdir(self.fakes)
        shutil.copytree(ROOT, self.path, symlinks=True,
                        ignore=shutil.ignore_patterns(
                            "build", ".git", "__pycache__", ".pytest_cache"))
        # The pattern above also omits tools/build.
        shutil.copytree(f"{ROOT}/tools/build", f"{self.path}/tools/build")
        os.makedirs(f"{self.path}/build/deps")
        for goal in ("run", "iso", "check", "flame", "test"):
            self.write(f"build/deps/{goal}", "")

    def share_objects(self):
        """make compiles what differs from ROOT, whose kernel is built."""
        copy_objects(self.path)

    def write(self, name, text):
        with open(f"{self.path}/{name}", "w") as file:
            file.write(text)

    def read(self, name):
        with open(f"{self.path}/{name}", "rb") as file:
            return file.read()

    def has(self, name):
        return os.path.exists(f"{self.path}/{name}")

    def fake(self, name, script):
        """Puts a fake program before the real one in PATH."""
        path = f"{self.fakes}/{name}"
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, 0o755)

    def command(self, *arguments, **variables):
        """make's arguments for subprocess.run."""
        path = f"{self.fakes}:{os.environ['PATH']}"
        return {"args": ["make", *arguments], "cwd": self.path,
                "env": environment(PATH=path, **variables)}

    def make(self, *arguments, preexec_fn=None, **variables):
        return subprocess.run(**self.command(*arguments, **variables),
                              capture_output=True, text=True, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, preexec_fn=preexec_fn)


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


# --- warnings -----------------------------------------------------------------


def test_warnings_are_errors_only_where_they_are_asked_to_be(tree):
    source = tree.read("lib/date.c").decode()
    tree.write("lib/date.c", source + WARNS)
    done = tree.make(OBJECT)
    assert done.returncode == 0 and "defined but not used" in done.stderr, done
    for how in {"CI": "true"}, {"WERROR": "1"}:
        done = tree.make(OBJECT, **how)  # although it is already compiled
        assert done.returncode == 2, done
        assert "defined but not used" in done.stderr, done
        assert "warnings are errors here (WERROR=0" in done.stderr, done
    assert tree.make(OBJECT, "WERROR=0", CI="true").returncode == 0
    tree.write("lib/date.c", source)
    done = tree.make(OBJECT, CI="true")
    assert (done.returncode, done.stderr) == (0, ""), done


def test_messages_stay_whole(tree):
    """Concurrent compilers' warnings are not interleaved."""
    tree.fake(CROSS_GCC, """
        for word; do case $word in *.c) file=$word;; -o) take=1;;
            *) [ -z "$take" ] || { out=$word; take=; };; esac; done
        for line in 1 2 3 4 5; do echo "$file: line $line" >&2; done
        while [ $# != 0 ]; do [ "$1" != -MF ] || : >"$2"; shift; done
        : >"$out" """)
    objects = [f"build/kernel/lib/{name}.o" for name in os.listdir(
        f"{tree.path}/lib") if name.endswith(".c")]
    done = tree.make("-j8", *objects)
    assert done.returncode == 0, done
    lines = done.stderr.splitlines()
    assert len(lines) == 5 * len(objects), lines
    for first in range(0, len(lines), 5):
        source = lines[first].split(":")[0]
        assert lines[first:first + 5] == [
            f"{source}: line {n}" for n in range(1, 6)], lines


# --- a moved tree ---------------------------------------------------------------

# What is compared with the options of each object: of the kernel, the programs and the
# host's tool.
FLAGS = [f"build/{name}" for name in ("kernel/config", "obj/flags", "native/flags")]


def test_a_moved_tree_is_up_to_date(tree):
    def built():
        return [os.stat(f"{tree.path}/{name}").st_mtime_ns for name in (OBJECT, *FLAGS)]

    assert tree.make(OBJECT, *FLAGS).returncode == 0
    before, moved = built(), f"{tree.path}-moved"
    os.rename(tree.path, moved)
    tree.path = moved
    done = tree.make(OBJECT, *FLAGS)
    assert done.returncode == 0 and "Building" not in done.stdout, done
    assert built() == before
    done = tree.make(OBJECT, *FLAGS, "KCC_FLAGS=-DOTHER", "UFLAGS=-g", "NFLAGS=-g")
    assert done.returncode == 0, done
    assert all(new > old for new, old in zip(built(), before)), done


# --- what is printed ----------------------------------------------------------


def test_elsewhere_than_on_a_terminal_it_is_a_line_for_each_stage(tree):
    done = tree.make(OBJECT, "build/kernel/lib/tree.c.o")
    assert done.stdout == "Building the kernel\n", done
    assert tree.make("-s", "-B", OBJECT).stdout == ""
    done = tree.make("VERBOSE=1", "-B", OBJECT)
    assert "  CC      lib/date.c\n" in done.stdout, done
    assert f"{CROSS_GCC} -std=gnu11" in done.stdout, done


def on_a_terminal(command):
    """All states of the screen, and the last one."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    child = pexpect.spawn(shlex.join(command["args"]), cwd=command["cwd"],
                          env=command["env"], dimensions=(ROWS, COLUMNS),
                          timeout=PATIENCE)
    states = []
    while True:
        try:
            data = child.read_nonblocking(1, PATIENCE)
        except pexpect.EOF:
            break
        stream.feed(data)
        if data == b"\r":
            states.append([line.rstrip() for line in screen.display
                           if line.strip()])
    child.close()
    return child.exitstatus, states, [line.rstrip() for line in screen.display
                                      if line.strip()]


def four_files(tree):
    """make arguments for a kernel of four files with a fake linker."""
    tree.write("tools/build/kernel", '#!/bin/sh\n: >"$1"\n')
    return tree.command("-j1", "kernel", "KSOURCES=" + " ".join(
        f"lib/{name}.c" for name in FOUR), "LWIP_SOURCES=", "TEST_SOURCES=")


def test_on_a_terminal_it_is_one_line_that_is_overwritten(tree):
    status, states, last = on_a_terminal(four_files(tree))
    assert status == 0 and last == []
    steps = []
    for state in states:
        assert len(state) <= 1, state
        if state and state[0] not in steps:
            steps.append(state[0])
    assert steps == [
        *(f"the kernel {n}/4: CC lib/{name}.c" for n, name in
          enumerate(FOUR, start=1)), "the kernel 5: LINK build/kernel.elf",
        "the kernel 6: LINK build/kernel-test.elf"]


def test_a_goal_that_is_a_file(tree):
    """A goal that is a file leaves no line that the shell's prompt overwrites."""
    status, _, last = on_a_terminal(tree.command(OBJECT))
    assert (status, last) == (0, ["  CC lib/date.c"])


def test_on_a_terminal_a_message_is_not_overwritten(tree):
    source = tree.read("lib/date.c").decode()
    tree.write("lib/date.c", source + WARNS)
    status, _, last = on_a_terminal(four_files(tree))
    assert status == 0
    assert last[0].startswith("lib/date.c"), last
    assert any("static int unused;" in line for line in last), last
    tree.write("lib/date.c", source + "static int;;broken\n")
    status, _, last = on_a_terminal(four_files(tree))
    assert status == 2
    assert last[0].startswith("lib/date.c"), last
    assert last[-1].startswith("make: ***") and OBJECT in last[-1], last


def test_help_names_every_goal():
    with open(f"{ROOT}/Makefile") as file:
        text = file.read().replace("\\\n", " ")
    goals = set(re.search(r"\.PHONY: (all .*)", text).group(1).split())
    internal = {goal for goal in goals if goal.startswith("checked")} | {
        "all", "machine", "host-tests", "help", "FORCE"}
    named = set(re.findall(r"make ([\w-]+)", subprocess.run(
        ["make", "-s", "-C", ROOT, "help"], env=environment(), check=True,
        capture_output=True, text=True).stdout))
    assert goals - internal <= named


# --- how many at once ---------------------------------------------------------

MEET = """
for word; do case $word in *.c) name=${word##*/};; esac; done
: >"$MEETING/$name"
%s
i=0
until [ "$(ls "$MEETING" | wc -l)" -ge $WANTED ]; do
    i=$((i + 1)); [ $i -lt 3000 ] || exit 9; sleep 0.02
done
while [ $# != 0 ]; do
    case $1 in -MF | -o) : >"$2";; esac; shift
done
%s
"""


@pytest.mark.parametrize("arguments, variables, at_once", [
    ([], {}, 3), (["-j1"], {}, 1), ([], {"MAKEFLAGS": "-j1"}, 1),
    (["-j", "2"], {}, 2)])
def test_all_cpus_unless_the_user_says_otherwise(tree, tmp_path, arguments,
                                                 variables, at_once):
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    tree.fake("nproc", "echo 3")
    # With -j1 a compiler that runs concurrently with another one fails.
    tree.fake(CROSS_GCC, MEET % (
        ('[ "$(ls "$MEETING" | wc -l)" = 1 ] || exit 8',
         'rm "$MEETING/$name"') if at_once == 1 else ("", "")))
    objects = [f"build/kernel/lib/{name}.c.o" for name in
               (*FOUR, "cpio", "format")]
    done = tree.make(*arguments, *objects, MEETING=str(meeting),
                     WANTED=str(at_once), **variables)
    assert done.returncode == 0, done


def test_clean_and_all_are_one_after_the_other(tree):
    tree.write("build/old", "")
    done = tree.make("-n", "clean", OBJECT)
    assert done.stdout.index("rm -rf") < done.stdout.index(CROSS_GCC), done
    assert ".NOTPARALLEL" in tree.read("Makefile").decode()


def test_a_pattern_of_tests_may_be_a_name_that_a_failure_shows(tree):
    assert tree.make("help", "T=test_a.py::test_b[1-c d]").returncode == 0


def test_run_has_the_terminal():
    """Keys typed while make still runs are passed to the machine."""
    child = pexpect.spawn("make", ["-C", ROOT, "run"], env=environment(),
                          dimensions=(ROWS, COLUMNS), timeout=ANSWER_PATIENCE)
    try:
        child.expect_exact(PROMPT, timeout=PATIENCE)
        child.send("echo typed''here; tty; poweroff\r")
        child.expect_exact("typedhere", timeout=ANSWER_PATIENCE)
        child.expect(pexpect.EOF, timeout=ANSWER_PATIENCE)
    finally:
        child.close(force=True)
    assert child.exitstatus == 0


def test_run_does_not_make_what_is_not_booted_from(tree):
    assert "strobe.iso" not in tree.make("-n", "-i", "run").stdout
    assert "strobe.iso" in tree.make("-n", "-i", "run", "VM=--iso").stdout


def test_an_old_iso_is_not_booted(tmp_path):
    """An outdated ISO is not booted: make run does not rebuild it."""
    iso = f"{ROOT}/build/strobe.iso"
    qemu = tmp_path / "qemu"
    qemu.write_text(f"#!/bin/sh\necho \"$@\" >'{tmp_path}/arguments'\n")
    qemu.chmod(0o755)
    made = os.stat(iso).st_mtime_ns
    for at, booted in ((made, True), (0, False)):
        os.utime(iso, ns=(at, at))
        try:
            subprocess.run([VM, "--iso", "--console", "--qemu", qemu],
                           timeout=PATIENCE, capture_output=True,
                           env={**os.environ, "STROBE_VM": ""})
        finally:
            os.utime(iso, ns=(made, made))
        arguments = (tmp_path / "arguments").read_text().split()
        assert (arguments[arguments.index("-cdrom") + 1] == iso) is booted


# --- what went wrong ----------------------------------------------------------


def right(tree):
    """A second make gives the same object as an undisturbed build."""
    done = tree.make(OBJECT)
    assert done.returncode == 0, done
    made = tree.read(OBJECT)
    assert tree.make("-B", OBJECT).returncode == 0
    assert tree.read(OBJECT) == made
    assert "lib/date.c" in tree.read(OBJECT[:-1] + "d").decode()


@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGKILL))
def test_interrupted(tree, number):
    """make interrupted while a compiler has written half of its files recovers."""
    tree.fake(CROSS_GCC, f"""
        while [ $# != 0 ]; do
            case $1 in -MF | -o) echo "half: of" >"$2";; esac; shift
        done
        kill -{number.value} 0; sleep 60""")
    command = tree.command(OBJECT)
    # In a background job SIGINT is ignored.
    process = subprocess.Popen(
        **command, start_new_session=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)
        if number != signal.SIGKILL else None)
    assert process.wait(timeout=PATIENCE) != 0
    assert not tree.has(OBJECT)
    os.remove(f"{tree.fakes}/{CROSS_GCC}")
    right(tree)


def test_full_disk(tree):
    """A full disk fails the build, and make recovers. (Files are limited to 1 KB.)"""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
    done = tree.make(OBJECT, preexec_fn=limit)
    assert done.returncode == 2 and not tree.has(OBJECT), done
    assert "File too large" in done.stderr, done
    right(tree)


def test_path_with_a_space(tmp_path):
    folder = tmp_path / "two words"
    folder.mkdir()
    shutil.copy(f"{ROOT}/Makefile", folder)
    done = subprocess.run(["make"], cwd=folder, env=environment(),
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert "has a space" in done.stderr and "move the clone" in done.stderr


def test_old_make():
    """A make older than 4.3 is refused. (Simulated by its feature list.)"""
    done = subprocess.run(["make", "-C", ROOT, "-n", ".FEATURES=none"],
                          env=environment(), capture_output=True, text=True,
                          timeout=PATIENCE)
    assert done.returncode == 2
    assert "needs GNU make 4.3 or later" in done.stderr


def listing(folder):
    return sorted((path, name, os.lstat(f"{path}/{name}").st_mtime_ns)
                  for path, _, names in os.walk(folder) for name in names)


def test_nothing_is_written_into_the_sources(tree, tmp_path):
    """With O=DIR all files are in DIR, which is updated from the sources."""
    out = f"{tmp_path}/out"
    before = listing(tree.path)
    done = tree.make(f"O={out}", OBJECT)
    assert done.returncode == 0 and os.path.exists(f"{out}/{OBJECT}"), done
    assert listing(tree.path) == before
    with open(f"{out}/lib/gone.c", "w"):
        pass
    tree.write("lib/come.c", "int come;\n")
    done = tree.make(f"O={out}", "build/kernel/lib/come.c.o")
    assert done.returncode == 0, done
    assert os.path.exists(f"{out}/build/kernel/lib/come.c.o")
    assert not os.path.exists(f"{out}/lib/gone.c")


def test_other_folders_are_not_taken_for_copies(tree, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").touch()
    for folder, reason in ((tmp_path / "mine", "has not copied there"),
                           ("inside", "must not be within the sources"),
                           (tmp_path / "a b", "must not have spaces")):
        done = tree.make(f"O={folder}", "kernel")
        assert done.returncode == 2 and reason in done.stderr, done
    assert (tmp_path / "mine" / "letter").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only(tree):
    shutil.rmtree(f"{tree.path}/build")
    os.chmod(tree.path, 0o555)
    done = tree.make("kernel")
    assert done.returncode == 2 and "make O=DIR" in done.stderr, done


def test_a_moved_clone_has_its_own_library(tmp_path):
    """Programs of a moved clone use nothing of the old folder."""
    for name in "tools", "build/musl/include", "build/musl/lib", "include":
        shutil.copytree(f"{ROOT}/{name}", tmp_path / name, symlinks=True)
    program = tmp_path / "hello"
    (tmp_path / "hello.c").write_text(
        '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n')
    done = subprocess.run(
        [f"{tmp_path}/tools/cc", "-H", "-Wl,--trace", f"{program}.c", "-o",
         program], env=environment(), capture_output=True, text=True,
        timeout=PATIENCE)
    read = done.stdout + done.stderr
    assert done.returncode == 0, done
    for file in "include/stdio.h", "lib/Scrt1.o", "lib/libc.a":
        assert f"{tmp_path}/build/musl/{file}" in read, done
    assert f"{ROOT}/" not in read, done
    assert subprocess.check_output(i386.command(program), text=True) == "hello\n"


# --- what tools read ----------------------------------------------------------


def test_compile_commands(tree):
    done = tree.make("compile_commands.json")
    assert done.returncode == 0, done
    entries = {entry["file"]: entry["arguments"] for entry in json.loads(
        tree.read("compile_commands.json"))}
    for folder in ("arch", "kernel", "lib", "user", "tools", "tests"):
        for path, _, names in os.walk(f"{tree.path}/{folder}"):
            for name in names:
                file = os.path.relpath(f"{path}/{name}", tree.path)
                assert file in entries or not name.endswith(".c") or \
                    file in ("arch/i386/vdso/vdso.c",
                             "tools/bench/symbols.c"), file
    assert "--target=i386-linux-gnu" in entries["kernel/mm/area.c"]
    assert "build/musl/include" in entries["user/tasks/tasks.c"]
    assert "-fsanitize=address,undefined" in entries["tests/host/test_cpio.c"]


@pytest.mark.parametrize("page, command", [
    ("syscalls.md", ("syscalls", "include/strobe/syscalls.def")),
    ("architecture.md", ("layers", "page", "docs/architecture.md")),
])
def test_generated_documents_are_current(page, command):
    tool, *arguments = command
    made = subprocess.run([f"tools/build/{tool}", *arguments], cwd=ROOT, check=True,
                          capture_output=True, text=True).stdout
    with open(f"{ROOT}/docs/{page}") as file:
        assert file.read() == made, "run make docs"
