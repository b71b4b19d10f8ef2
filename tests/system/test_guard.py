"""make guard: the budgets of tests/budgets.txt hold; where one does not, the path and
the line are named; a wrong file or argument is reported. tools/bisect finds the commit
that made a path dearer."""
import os
import re
import shlex
import shutil
import subprocess

import pytest

from machine import LONG_PATIENCE, PATIENCE, ROOT

BUDGETS = f"{ROOT}/tests/budgets.txt"
GETPID = int(re.search(r"^ *(\d+) .* getpid$", open(BUDGETS).read(), re.MULTILINE)[1])
NOT_COMPARED = "Not compared: the budgets are for "
SOURCE = "kernel/syscall/sys_identity.c"
BODY = "    return (s32)current_task()->id;\n"


def guard(*arguments):
    environment = {k: v for k, v in os.environ.items() if k != "STROBE_VM"}
    return subprocess.run([f"{ROOT}/tools/guard", *map(str, arguments)], text=True,
                          capture_output=True, timeout=PATIENCE, env=environment)


def compared(done):
    if NOT_COMPARED in done.stdout:
        pytest.skip(done.stdout.splitlines()[0])
    return done


def kernel_with(folder, text):
    """build/kernel.elf with other contents of SOURCE, compiled and linked in the same
    way."""
    made, kernel = folder / "made.o", folder / "kernel.elf"
    (folder / os.path.dirname(SOURCE)).mkdir(parents=True, exist_ok=True)
    (folder / SOURCE).write_text(text)
    compiler = shlex.split(open(f"{ROOT}/build/kernel/config").read())
    subprocess.run([*compiler, f"-ffile-prefix-map={folder}=.", "-c", folder / SOURCE,
                    "-o", made], cwd=ROOT, check=True, timeout=PATIENCE)
    commands = subprocess.run(
        ["make", "-n", "-W", "linker.ld", "VERBOSE=1", "build/kernel.elf"], cwd=ROOT,
        capture_output=True, text=True, timeout=PATIENCE, check=True,
        env={k: v for k, v in os.environ.items() if not k.startswith("MAKE")}).stdout
    link = shlex.split(re.search(r"^tools/build/kernel build/kernel.elf .*$", commands,
                                 re.MULTILINE)[0])
    link[1] = str(kernel)
    link[link.index(f"build/kernel/{SOURCE}.o")] = str(made)
    subprocess.run(link, cwd=ROOT, check=True, timeout=PATIENCE)
    return kernel


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A kernel whose getpid takes an instruction more; the line that does it."""
    text = open(f"{ROOT}/{SOURCE}").read()
    before, found, after = text.partition(BODY)
    assert found, f"{SOURCE} has no {BODY!r}"
    text = f'{before}    __asm__ volatile("nop");\n{BODY}{after}'
    return (kernel_with(tmp_path_factory.mktemp("planted"), text),
            before.count("\n") + 1)


@pytest.fixture
def copy(tmp_path):
    """A copy of the budgets, for --budgets."""
    for suffix in (".txt", ".rows"):
        shutil.copy(BUDGETS.replace(".txt", suffix), tmp_path)
    return tmp_path / "budgets.txt"


def test_budgets_hold():
    done = compared(guard())
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^All \d+ budgets hold\.$", done.stdout, re.MULTILINE), done


def test_one_instruction_more_is_found_and_named(planted):
    kernel, line = planted
    done = compared(guard("--kernel", kernel, "--only", "getpid"))
    assert done.returncode == 1, done
    table, path, *lines = done.stdout.splitlines()[1:]
    assert re.fullmatch(rf" *{GETPID} +{GETPID + 1} +\+1  getpid", table), done.stdout
    assert re.fullmatch(r" *\+1  do_getpid;\S+;sys_getpid: 4 before, 5 now", path), path
    assert len(lines) == 1, lines
    assert re.fullmatch(rf" *\+1  {SOURCE}:{line}( .*)?", lines[0]), lines
    assert "1 of 1 budgets do not hold: getpid" in done.stderr and \
        "make guard UPDATE=1" in done.stderr, done.stderr


def test_update_accepts(planted, copy):
    """It lists the change, rewrites this budget alone, and the guard passes then; the
    old kernel fails, as one that is cheaper than its budget."""
    kernel, _ = planted
    only = ("--budgets", copy, "--only", "getpid")
    compared(guard(*only))
    done = guard(*only, "--kernel", kernel, "--update")
    change = f"getpid: {GETPID + 1} instructions, {GETPID} before (+1)"
    assert done.returncode == 0 and change in done.stdout and \
        ";sys_getpid: 4 before, 5 now" in done.stdout, done
    for old, new in ((BUDGETS, copy), (BUDGETS.replace(".txt", ".rows"),
                                       copy.with_suffix(".rows"))):
        changed = [(a, b) for a, b in zip(open(old), open(new)) if a != b]
        assert len(changed) == 1, changed
    assert guard(*only, "--kernel", kernel).returncode == 0
    done = guard(*only)
    assert done.returncode == 1 and "-1  getpid" in done.stdout, done
    assert ";sys_getpid: 5 before, 4 now" in done.stdout, done.stdout


def test_other_compilers_are_not_compared(copy):
    copy.write_text(re.sub("^for .*$", "for gcc 2.95, QEMU 7.2", copy.read_text(),
                           flags=re.MULTILINE))
    done = guard("--budgets", copy, "--only", "getpid")
    assert done.returncode == 0 and f"{NOT_COMPARED}gcc 2.95, QEMU 7.2, this is " in \
        done.stdout and re.search(r"^ *\d+  getpid$", done.stdout, re.MULTILINE), done
    done = guard("--budgets", copy, "--only", "getpid", "--update")
    assert done.returncode == 1 and "update all" in done.stderr, done


@pytest.mark.parametrize("text, problem", [
    ("nonsense\n", ":1: not '$ COMMAND', and not a budget"),
    ("  1 0 getpid too-early\n", ":1: not '$ COMMAND'"),
    ("for gcc\n", ": no budgets"),
    ("$ true\n 1 0 a x\n 1 0 b x\n", ": two budgets are called 'x'"),
    ("$ true\n 1 0 no_such_function x\n",
     "no calls of no_such_function in the path no_such_function"),
    ("$ false\n 1 0 main x\n", "false: tools/vm: status 1"),
])
def test_bad_budgets(tmp_path, text, problem):
    file = tmp_path / "budgets.txt"
    file.write_text(text)
    done = guard("--budgets", file)
    assert done.returncode == 1 and problem in done.stderr and not done.stdout, done


@pytest.mark.parametrize("arguments, problem", [
    (("--only", "nothing"), "--only nothing: no such budget; there are: getpid, "),
    (("--kernel", "/nonexistent"), "/nonexistent is missing: run make"),
    (("--budgets", "/nonexistent"), "/nonexistent: No such file or directory"),
])
def test_bad_arguments(arguments, problem):
    done = guard(*arguments)
    assert done.returncode == 1 and problem in done.stderr, done


# --- tools/bisect ---------------------------------------------------------------

DEARER = "getpid executes a nop"


def bisect(*arguments):
    return subprocess.run([f"{ROOT}/tools/bisect", *map(str, arguments)], text=True,
                          capture_output=True, timeout=LONG_PATIENCE)


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """A clone with commits of which the third makes getpid dearer and the first cannot
    be built."""
    if not os.path.exists(f"{ROOT}/.git") or not shutil.which("git"):
        pytest.skip("no git, or not a clone")
    clone = tmp_path_factory.mktemp("history") / "clone"
    subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, clone], check=True)
    text = (clone / SOURCE).read_text()
    dearer = text.replace(BODY, f'    __asm__ volatile("nop");\n{BODY}')
    for title, content in (("Does not build", text + "#error no\n"),
                           ("Builds again", text),
                           (DEARER, dearer)):
        (clone / SOURCE).write_text(content)
        subprocess.run(["git", "-c", "user.name=Tester", "-c", "user.email=tester@localhost",
                        "commit", "--quiet", "-am", title], cwd=clone, check=True)
    return clone


def test_bisect_names_the_commit(history):
    """Also with a revision between that cannot be built. The worktree is removed."""
    done = bisect("--repository", history, "--path", "do_getpid@syscall_entry_point",
                  "HEAD~3", "HEAD", "--", "bench getpid")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^ +skipped  \w+ Does not build\n.*error: #error no", done.stdout,
                     re.MULTILINE), done.stdout
    commit, author, title, change, path, line = \
        done.stdout.split("\n\n")[1].splitlines()
    assert re.fullmatch(r"[0-9a-f]{40}", commit) and "Tester" in author, done.stdout
    assert title.strip() == DEARER, done.stdout
    assert re.match(r"\+1 instructions: \d+ before, \d+ after; from OLD to NEW \+1$",
                    change), change
    assert re.fullmatch(r" *\+1  do_getpid;\S+;sys_getpid: \d+ before, \d+ now", path)
    assert re.fullmatch(rf' *\+1  {SOURCE}:\d+  __asm__ volatile\("nop"\);', line), line
    trees = subprocess.run(["git", "worktree", "list"], cwd=history, capture_output=True,
                           text=True, check=True).stdout
    assert len(trees.splitlines()) == 1, trees


@pytest.mark.parametrize("arguments, problem", [
    (("HEAD", "HEAD~1"), "HEAD is not an ancestor of HEAD~1: OLD is the earlier commit"),
    (("HEAD", "HEAD"), "HEAD is not an ancestor of HEAD"),
    (("nonsense", "HEAD"), "nonsense: no such commit in "),
])
def test_bisect_refuses(history, arguments, problem):
    done = bisect("--repository", history, *arguments, "--", "true")
    assert done.returncode == 1 and problem in done.stderr and not done.stdout, done
