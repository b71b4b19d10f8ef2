"""tools/deps: the packages installed for each goal."""
import pytest

from fakes import machine  # noqa: F401

RUN_SET = ("make gcc-i686-linux-gnu libc6-dev-i386-cross "
           "linux-libc-dev-i386-cross dpkg-dev xz-utils bzip2 patch tcl cpio "
           "python3 qemu-system-x86")
TOOL_SET = RUN_SET + " gcc libc6-dev"

APT = """
case "$*" in
*--print-uris*)
    [ -e "%(lists)s" ] || { echo "E: Unable to locate package" >&2; exit 100; }
    [ ! -e "%(kept)s" ] || exit 0
    echo "'http://x/a.deb' a.deb 1400000 SHA256:0"
    echo "'http://x/b.deb' b.deb 1000000 SHA256:0" ;;
*update*) touch "%(lists)s" ;;
*install*) [ ! -e "%(broken)s" ] || { echo 'E: 404' >&2; exit 100; } ;;
esac
"""


def with_apt(machine, installed="", lists=True, broken=False, kept=False):
    """Fakes apt and dpkg: `installed` packages; apt has `lists` or not; downloads are
    `broken`; or apt has `kept` earlier ones."""
    files = {"lists": machine.folder / "lists",
             "broken": machine.folder / "broken",
             "kept": machine.folder / "kept"}
    for name, there in ("lists", lists), ("broken", broken), ("kept", kept):
        if there:
            files[name].touch()
    machine.fake("apt-get", APT % files)
    machine.fake("dpkg-query", f"for p in {installed}; do\n"
                 'printf "installed $p "\ndone')
    machine.fake("sudo", 'exec "$@"')


def installs(machine):
    return [call.split(" install ")[1] for call in machine.calls("apt-get")
            if " install " in call and "--print-uris" not in call]


def test_run_needs_the_run_set_only(machine):
    with_apt(machine)
    done = machine.run("tools/deps", "run")
    assert done.returncode == 0, done
    assert installs(machine) == [RUN_SET]
    assert f"installing for run: {RUN_SET}" in done.stderr
    assert "in all 2 packages, 2 MB to download" in done.stderr
    assert not [call for call in machine.calls() if "update" in call]
    assert machine.calls("sudo env DEBIAN_FRONTEND=noninteractive apt-get")


def test_nothing_to_download(machine):
    with_apt(machine, kept=True)
    done = machine.run("tools/deps", "run")
    assert done.returncode == 0 and installs(machine) == [RUN_SET], done
    assert done.stderr.splitlines()[-1] == \
        "tools/deps: nothing to download: apt has kept them"


def test_without_sudo(machine):
    with_apt(machine, installed=TOOL_SET)
    (machine.bin / "sudo").unlink()
    done = machine.run("tools/deps", "iso")
    assert (done.returncode, done.stderr) == (
        1, "tools/deps: there is no sudo: run 'tools/deps iso' as root; it "
        "installs: grub-common grub-pc-bin grub-efi-amd64-bin grub-efi-ia32-bin "
        "xorriso mtools\n")
    assert machine.calls("apt-get") == []


def test_what_is_there_is_not_asked_for(machine):
    with_apt(machine, installed=RUN_SET)
    done = machine.run("tools/deps", "run")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert machine.calls("apt-get") == []
    with_apt(machine, installed=RUN_SET.replace(" tcl", ""))
    done = machine.run("tools/deps", "--list", "run")
    assert (done.returncode, done.stdout) == (1, "tcl\n")
    assert machine.calls("apt-get") == []


def test_goals_include_each_other(machine):
    with_apt(machine)

    def goal(name):
        return set(machine.run("tools/deps", "--list", name).stdout.split())
    run = set(RUN_SET.split())
    assert goal("run") == run
    tool = goal("tool")
    assert tool - run == {"gcc", "libc6-dev"}
    assert goal("iso") - tool == {
        "grub-common", "grub-pc-bin", "grub-efi-amd64-bin", "grub-efi-ia32-bin",
        "xorriso", "mtools"}
    assert goal("flame") - tool == {"npm"}
    assert goal("iso") < goal("check") and "cppcheck" in goal("check")
    assert goal("iso") | goal("flame") < goal("test")
    assert "cppcheck" not in goal("test") and "chromium" in goal("test")
    assert goal("distro") == {"debootstrap"}
    assert goal("fuzz") - goal("iso") == {"clang", "libclang-rt-dev", "llvm"}
    assert goal("all") == (goal("test") | goal("check") | goal("fuzz") |
                           goal("distro"))
    assert machine.run("tools/deps", "--list").stdout.split() == machine.run(
        "tools/deps", "--list", "all").stdout.split()


def test_a_machine_that_runs_no_i386_programs(machine):
    """A machine that runs no i386 programs needs its own compiler for build programs,
    and an emulator for tests."""
    with_apt(machine, installed=RUN_SET)
    assert "qemu-user" not in machine.run("tools/deps", "--list", "test").stdout
    machine.write(machine.root / "tools/build/runs-i386", "exit 1")
    done = machine.run("tools/deps", "--list", "run")
    assert (done.returncode, done.stdout) == (1, "gcc libc6-dev\n")
    for goal in "quick", "test", "all":
        assert "qemu-user" in machine.run("tools/deps", "--list", goal).stdout


def test_another_npm_will_do(machine):
    with_apt(machine, installed=TOOL_SET)
    machine.fake("npm")
    assert machine.run("tools/deps", "--list", "flame").stdout == ""


def test_lists_that_lack_packages_are_made_anew(machine):
    with_apt(machine, lists=False)
    done = machine.run("tools/deps", "run")
    assert done.returncode == 0, done
    assert len(installs(machine)) == 1
    assert "apt's lists lack packages: apt-get update" in done.stderr
    assert "Unable to locate" not in done.stderr


def test_a_download_that_fails_is_tried_again_and_said(machine):
    with_apt(machine, broken=True)
    done = machine.run("tools/deps", "run")
    assert done.returncode == 1, done
    assert len(installs(machine)) == 2
    assert "again with new lists: apt-get update" in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("tools/deps: apt could not install: make gcc-i686")
    assert "the same command goes on from here" in last


def test_no_such_goal(machine):
    with_apt(machine)
    for arguments in ("nonsense",), ("run", "fly"), ("--names", "plan9"):
        done = machine.run("tools/deps", *arguments)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done
        assert arguments[-1] in done.stderr and "there are" in done.stderr
    assert machine.calls() == []


def test_without_apt(machine):
    """Without apt, on any system, it fails and names tools/container."""
    done = machine.run("tools/deps", "run")
    assert done.returncode == 1 and "has no apt" in done.stderr, done
    assert "tools/container make run" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("distribution, names, absent", [
    ("fedora", "glibc-devel qemu-system-x86-core grub2-tools-extra "
     "grub2-efi-ia32-modules", "libc6"),
    ("arch", "glibc python qemu-system-x86 libisoburn", "grub-pc-bin"),
    ("opensuse", "glibc-devel qemu-x86 grub2-i386-pc", "grub-common")])
def test_names_elsewhere(machine, distribution, names, absent):
    done = machine.run("tools/deps", "--names", distribution, "iso")
    has, lacks, sources, container = done.stdout.splitlines()
    assert set(names.split()) < set(has.split()) and absent not in has, done
    assert "gcc-i686-linux-gnu" in lacks and "gcc-i686" not in has
    assert "Debian's source packages" in sources
    assert "tools/container make run" in container
