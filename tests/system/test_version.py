"""The version, and that a commit's build does not depend on folder, time and user.
tools/reproduce compares two whole builds."""
import os
import re
import shutil
import stat
import subprocess

import pytest

from machine import PATIENCE, ROOT, vm

COMMIT = ("tools/build/version", "tools/build/release", "VERSION",
          ".gitattributes")
GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "a",
       "GIT_AUTHOR_EMAIL": "a@example", "GIT_COMMITTER_NAME": "a",
       "GIT_COMMITTER_EMAIL": "a@example",
       "GIT_COMMITTER_DATE": "1700000000 +0100"}
EPOCH = "1700000000"
EDGES = (("UTC", 0o022, "C"), ("Asia/Kathmandu", 0o077, "C.UTF-8"))
CPIO_HEADER, CPIO_FIELD = 110, 8
FIELDS = {"mode": 1, "uid": 2, "gid": 3, "links": 4, "time": 5, "size": 6,
          "name_size": 11}


def built(name):
    with open(f"{ROOT}/build/{name}", encoding="ascii") as file:
        return file.read().strip()


def run(folder, *command, status=0):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True,
                          env={**os.environ, **GIT}, timeout=PATIENCE)
    assert done.returncode == status, done
    return done.stdout.strip() + done.stderr.strip()


@pytest.fixture
def clone(tmp_path):
    """A repository of one commit, with tools/build/version."""
    folder = tmp_path / "clone"
    for name in COMMIT:
        os.makedirs(os.path.dirname(folder / name), exist_ok=True)
        shutil.copy(f"{ROOT}/{name}", folder / name)
    run(folder, "git", "init", "-q")
    run(folder, "git", "add", ".")
    run(folder, "git", "commit", "-qm", "One")
    return folder


def version(folder):
    return run(folder, f"{folder}/tools/build/version").split()


def test_versions(clone, tmp_path):
    hash_ = run(clone, "git", "rev-parse", "HEAD")[:12]
    assert version(clone) == [hash_, EPOCH]
    run(clone, "git", "tag", "v1.2")
    assert version(clone) == ["v1.2", EPOCH]
    run(clone, "git", "commit", "-qm", "Two", "--allow-empty")
    hash_ = run(clone, "git", "rev-parse", "HEAD")[:12]
    assert version(clone) == [f"v1.2-1-g{hash_}", EPOCH]
    with open(clone / "VERSION", "a", encoding="ascii") as file:
        file.write("\n")
    assert version(clone) == [f"v1.2-1-g{hash_}-dirty", EPOCH]

    # The commit without its history, and a commit without a tag.
    run(tmp_path, "git", "clone", "-q", "--depth", "1", f"file://{clone}",
        "shallow")
    assert version(tmp_path / "shallow") == [hash_, EPOCH]


@pytest.mark.parametrize("tag", (True, False))
def test_version_of_an_archive(clone, tmp_path, tag):
    if tag:
        run(clone, "git", "tag", "-a", "v1.2", "-m", "One point two")
    said = version(clone)
    os.makedirs(clone / "out")  # not a clone: it has no .git
    run(clone, "git", "archive", "-o", "out/a.tar", "HEAD")
    run(clone / "out", "tar", "-xf", "a.tar")
    assert version(clone / "out") == said
    shutil.copytree(clone / "tools", tmp_path / "copy/tools")
    assert version(tmp_path / "copy")[0] == "unknown"


def test_release_refuses(clone):
    assert "has no tag" in run(clone, "tools/build/release", status=1)
    with open(clone / "VERSION", "a", encoding="ascii") as file:
        file.write("\n")
    for arguments in ((), ("v1.2",)):
        assert "not committed" in run(clone, "tools/build/release", *arguments,
                                      status=1)


def test_the_machine_and_its_recordings_say_it(tmp_path):
    """uname -v, the kernel's log and the header of a recording have the version."""
    said = f"#1 SMP PREEMPT {built('version')}"
    result = vm("uname -v; dmesg | head -n 1; profile -o /out/p tester 1 >&2; "
                "sprofile -o /out/s tester 1 >&2", "--get", str(tmp_path))
    assert result.status == 0, result
    assert result.output.splitlines()[0] == said
    assert said in result.output.splitlines()[1]
    for name in ("p", "s"):
        report = run(ROOT, "build/strobe", "report", str(tmp_path / name))
        assert f"\nKernel:  {said}\n" in report
        perf = run(ROOT, "perf", "report", "--header-only", "-i",
                   str(tmp_path / name))
        assert f"\n# perf version : {said}\n" in perf


def members(data):
    """The files of a newc archive as (name, fields)."""
    at = 0
    while True:
        fields = {name: int(data[at + 6 + i * CPIO_FIELD:][:CPIO_FIELD], 16)
                  for name, i in FIELDS.items()}
        named = at + CPIO_HEADER
        name = data[named:named + fields["name_size"] - 1].decode()
        if name == "TRAILER!!!":
            return
        yield name, fields
        at = (named + fields["name_size"] + 3) // 4 * 4
        at = (at + fields["size"] + 3) // 4 * 4


SPECIAL = {"bin/login": 0o4755, "etc/shadow": 0o600, "tmp": 0o1777}


def test_initrd_is_of_the_commit_alone():
    with open(f"{ROOT}/build/initrd", "rb") as file:
        found = list(members(file.read()))
    assert [name for name, _ in found] == sorted(
        (name for name, _ in found), key=str.encode)
    for name, fields in found:
        mode = fields["mode"]
        assert fields["time"] == int(built("epoch")), name
        assert (fields["uid"], fields["gid"]) == (0, 0), name
        wanted = [SPECIAL[name]] if name in SPECIAL else [0o644, 0o755]
        assert stat.S_ISLNK(mode) or mode & 0o7777 in wanted, (name, oct(mode))


def test_two_isos_are_the_same(tmp_path):
    images = []
    for zone, umask, locale in EDGES:
        kernel = tmp_path / "kernel.elf"
        shutil.copy(f"{ROOT}/build/kernel.elf", kernel)
        os.chmod(kernel, 0o777 & ~umask)
        out = tmp_path / f"{umask}.iso"
        subprocess.run([f"{ROOT}/tools/build/iso", out, kernel, "", kernel],
                       check=True, umask=umask, timeout=PATIENCE,
                       env={**os.environ, "TZ": zone, "LC_ALL": locale,
                            "SOURCE_DATE_EPOCH": EPOCH})
        images.append(out.read_bytes())
    assert images[0] == images[1]


@pytest.mark.parametrize("name", (
    "kernel.elf", "kernel/vdso.so", "strobe", "user/profile", "guest/clocks",
    "busybox/busybox", "lua/lua", "sqlite/sqlite3"))
def test_no_path_of_this_clone(name):
    """Source names are relative to the clone's root, also in addr2line."""
    with open(f"{ROOT}/build/{name}", "rb") as file:
        data = file.read()
    assert ROOT.encode() not in data
    if name != "kernel/vdso.so":  # without debug information
        main = "kernel_main" if name == "kernel.elf" else "main"
        address = re.search(rf"^(\w+) T {main}$", run(
            ROOT, "nm", f"build/{name}"), re.MULTILINE)[1]
        line = run(ROOT, "addr2line", "-e", f"build/{name}", address)
        path = line.split(":")[0]
        assert path.startswith("./"), line
        assert "/src/" in path or "/obj/" in path or \
            os.path.exists(f"{ROOT}/{path}"), line
