"""tools/build/fetch: the sources of Debian packages, and their comparison with the
recorded ones."""
import hashlib
import shutil

import pytest

from fakes import machine  # noqa: F401
from machine import ROOT

ARCHIVE = """
case "$*" in
*indextargets*--no-release-info*) echo "http://x/ suite main" ;;
*indextargets*) [ -e "%(folder)s/no-lists" ] || echo "http://x/ suite main" ;;
*update*) touch "%(folder)s/updated" ;;
*--print-uris*) cat "%(folder)s/uris" ;;
*source*)
    [ ! -e "%(folder)s/stale" ] || [ -e "%(folder)s/updated-twice" ] ||
        { mv "%(folder)s/updated" "%(folder)s/updated-twice"
          echo 'E: 404 Not Found' >&2; exit 100; }
    cp "%(folder)s"/archive/* . ;;
esac
"""
FILES = {"red_1.2-3.dsc": b"red", "red_1.2.orig.tar.gz": b"fish"}


def codename():
    with open("/etc/os-release", encoding="utf-8") as file:
        facts = dict(line.rstrip().split("=", 1) for line in file
                     if "=" in line)
    return facts.get("VERSION_CODENAME", "unknown").strip('"')


def sum_of(content):
    return hashlib.sha256(content).hexdigest()


def with_archive(machine, recorded="1.2-3", files=None):
    """Fakes an apt with the source package `red`; packages.txt has its version
    `recorded`, or none."""
    files = files or FILES
    (machine.folder / "archive").mkdir()
    for name, content in FILES.items():
        (machine.folder / "archive" / name).write_bytes(content)
    (machine.folder / "uris").write_text("".join(
        f"'http://x/pool/{name}' {name} {len(content)} SHA256:{sum_of(content)}\n"
        for name, content in FILES.items()))
    (machine.root / "tools/build/packages.txt").write_text(
        "# a comment\n" + "".join(
            f"{codename()} red {recorded} {sum_of(content)} {name}"
            f" pool/{name}\n"
            for name, content in files.items() if recorded))
    machine.fake("apt-get", ARCHIVE % {"folder": machine.folder})
    machine.fake("apt-helper", "exit 100")
    machine.fake("dpkg-source", 'for out; do :; done; mkdir "$out"')
    return machine.folder / "out"


def test_what_is_recorded_is_silent_by_the_index_too(machine):
    out = with_archive(machine)
    done = machine.run("tools/build/fetch", "source", "red", str(out))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
    assert out.is_dir()
    assert machine.calls("dpkg-source")[0].split()[-2:] == [
        "red_1.2-3.dsc", str(out)]


@pytest.mark.parametrize("recorded, files, said", [
    ("1.2-2", None, "red 1.2-3: not the version recorded for {}, 1.2-2"),
    ("1.2-3", {**FILES, "red_1.2-3.dsc": b"blue"},
     "red 1.2-3: not the files recorded for {}; going on"),
    ("", None, "red 1.2-3: no version is recorded for {}; going on")])
def test_a_difference_from_the_record_is_said(machine, recorded, files, said):
    out = with_archive(machine, recorded, files)
    done = machine.run("tools/build/fetch", "source", "red", str(out))
    assert done.returncode == 0 and out.is_dir(), done
    assert said.format(codename()) in done.stderr, done
    if files:
        assert sum_of(b"blue") in done.stderr and sum_of(b"red") in done.stderr


def test_an_index_that_is_old_is_made_anew(machine):
    out = with_archive(machine)
    (machine.folder / "stale").touch()
    done = machine.run("tools/build/fetch", "source", "red", str(out))
    assert done.returncode == 0 and out.is_dir(), done
    assert "again with new indexes" in done.stderr
    assert len([c for c in machine.calls() if " update" in c]) == 2


def test_an_archive_that_lacks_the_file_is_said(machine):
    out = with_archive(machine)
    shutil.rmtree(machine.folder / "archive")
    out.mkdir()
    done = machine.run("tools/build/fetch", "source", "red", str(out))
    assert done.returncode == 1 and not out.exists(), done
    last = done.stderr.splitlines()[-1]
    assert last.startswith("tools/build/fetch: cannot get red: "), done
    assert "make goes on from here" in last


def serve_pool(machine):
    """The archive has the files, and no index."""
    (machine.folder / "archive").rename(machine.folder / "pool")
    machine.fake("apt-helper", f'''
        while [ "$1" != download-file ]; do shift; done
        [ "$4" = "SHA256:$(sha256sum <"{machine.folder}/pool/${{2##*/}}" |
            cut -d ' ' -f 1)" ] || exit 100
        cp "{machine.folder}/pool/${{2##*/}}" "$3"''')


def test_recorded_files_need_no_index(machine):
    out = with_archive(machine)
    serve_pool(machine)
    for _ in range(2):
        done = machine.run("tools/build/fetch", "source", "red", str(out))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
        assert out.is_dir()
    assert not any("update" in call for call in machine.calls("apt-get"))
    # The second time they are there.
    assert [call.split()[-2] for call in machine.calls("apt-helper")] == list(FILES)
    assert "http://x/pool/red_1.2-3.dsc" in machine.calls("apt-helper")[0]


@pytest.mark.parametrize("lost", (False, True))
def test_those_of_debian_13_are_the_last_resort(machine, lost):
    """If neither the recorded files of this Debian (which may be lost; unstable has no
    record) nor an index can be had. (A mirror's indexes may be inconsistent for days
    during an update.)"""
    out = with_archive(machine)
    records = machine.root / "tools/build/packages.txt"
    text = records.read_text()
    records.write_text(text.replace(codename(), "trixie") + (
        text.replace("red_1.2", "red_1.1") if lost else ""))
    serve_pool(machine)
    done = machine.run("tools/build/fetch", "source", "red", str(out))
    assert done.returncode == 0 and out.is_dir(), done
    if codename() != "trixie":
        assert done.stderr.endswith("red as recorded for trixie\n"), done


def test_a_full_disk_is_said(machine):
    out = with_archive(machine)
    shutil.rmtree(machine.folder / "archive")
    machine.fake("df", "echo head; echo /dev/red 9999999 9999999 2048 100% /")
    done = machine.run("tools/build/fetch", "source", "red", str(out))
    assert done.returncode == 1, done
    last = done.stderr.splitlines()[-1]
    assert "is full (2 MB free)" in last and "goes on from here" in last
    # apt-get would fill the disk, and hang.
    assert not any("update" in call for call in machine.calls("apt-get"))


def test_half_a_file_is_not_built(machine):
    out = with_archive(machine)
    (machine.folder / "archive/red_1.2.orig.tar.gz").write_bytes(b"fi")
    done = machine.run("tools/build/fetch", "source", "red", str(out))
    assert done.returncode == 1 and not out.exists(), done
    assert machine.calls("dpkg-source") == []
    (machine.folder / "archive/red_1.2.orig.tar.gz").write_bytes(b"fish")
    done = machine.run("tools/build/fetch", "source", "red", str(out))
    assert done.returncode == 0 and out.is_dir(), done


def test_a_machine_without_lists(machine):
    out = with_archive(machine)
    (machine.folder / "no-lists").touch()
    done = machine.run("tools/build/fetch", "source", "red", str(out))
    assert (done.returncode, done.stderr) == (0, "") and out.is_dir(), done


def test_no_archive(machine):
    with_archive(machine)
    machine.fake("apt-get")
    done = machine.run("tools/build/fetch", "source", "red", "out")
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done
    assert "apt-get update" in done.stderr and "tools/container" in done.stderr


def test_records_are_whole():
    """packages.txt has every package, for Debian 12 and 13; bash's suite is Debian
    12's (tests/suites/expected.txt)."""
    with open(f"{ROOT}/tools/build/packages.txt", encoding="utf-8") as file:
        rows = [line.split() for line in file if line[0] != "#"]
    for suite in "bookworm", "trixie":
        mine = [row for row in rows if row[0] == suite]
        assert {row[1] for row in mine} == {
            "musl", "busybox", "lua5.4", "sqlite3", "lwip",
            "busybox-static", "console-setup-linux", "memtest86+", "qrencode",
            "lz4", "zlib"} | (
                {"bash", "bash-static"} if suite == "bookworm" else set())
        assert all(len(row) == 6 and len(row[3]) == 64 for row in mine)
