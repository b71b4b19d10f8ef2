"""tools/container: the commands that it passes to podman or docker."""
import os
import subprocess

import pytest

from fakes import USER, machine  # noqa: F401
from machine import PATIENCE

ENGINE = 'case "$1 $2" in "image inspect") [ -e "%s" ] ;; *) exit %d ;; esac\n'


def with_engine(machine, name, image=True, status=0):
    there = machine.folder / "image"
    if image:
        there.touch()
    machine.fake(name, ENGINE % (there, status))


def test_no_container(machine):
    done = machine.run("tools/container", "make", "run")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == ("tools/container: there is neither podman nor "
                           "docker: install one of them\n")


@pytest.mark.parametrize("engine", ["podman", "docker"])
def test_a_command_in_a_container(machine, engine):
    with_engine(machine, engine, status=7)
    done = machine.run("tools/container", "make", "run", "CMD=echo a  b")
    assert done.returncode == 7, done
    assert machine.calls(f"{engine} build") == []
    run, = machine.calls(f"{engine} run")
    for part in (f"--volume {machine.root}:/strobe ", "--rm --interactive ",
                 f"--volume {machine.root}/build/container:/strobe/build ",
                 "--workdir /strobe strobe-run:", "--env TERM=red "):
        assert part in run, run
    assert run.endswith(" make run CMD=echo a  b")
    assert "--tty" not in run
    assert (machine.root / "build/container").is_dir()
    assert ("--userns=keep-id" if engine == "podman" else
            f"--user={USER}:{USER}") in run


def test_a_user_who_is_root_in_the_container(machine):
    """With rootless docker, and for root, --user is not passed."""
    with_engine(machine, "docker")
    machine.fake("docker", 'case $1 in info) echo "[name=rootless]" ;; esac')
    machine.run("tools/container", "true")
    machine.fake("docker")
    machine.fake("id", "echo 0")
    machine.run("tools/container", "true")
    runs = machine.calls("docker run")
    assert len(runs) == 2 and not any("--user" in run for run in runs), runs


def test_a_terminal_is_passed_on(machine):
    with_engine(machine, "podman")
    ours, theirs = os.openpty()
    subprocess.run([machine.root / "tools/container", "true"], stdin=theirs,
                   stdout=theirs, env={"PATH": str(machine.bin)},
                   timeout=PATIENCE)
    os.close(ours)
    os.close(theirs)
    assert " --tty " in machine.calls("podman run")[0]


def test_podman_is_preferred(machine):
    with_engine(machine, "podman")
    with_engine(machine, "docker")
    machine.run("tools/container", "true")
    assert machine.calls("podman run") and not machine.calls("docker")


@pytest.mark.parametrize("goal, command", [
    ("run", "make run"), ("run", "tools/vm -- true"), ("iso", "make"),
    ("iso", "make -j2 all"), ("test", "make test"), ("check", "make check"),
    ("tool", "tools/strobe --help"), ("tool", "make build/strobe"),
    ("test", "make test-checked"), ("flame", "make flame CMD=test"),
    ("all", "--goal all make run")])
def test_an_image_for_each_goal(machine, goal, command):
    with_engine(machine, "podman", image=False)
    machine.run("tools/container", *command.split())
    build, = machine.calls("podman build")
    assert f"-t strobe-{goal}:" in build and f"GOAL={goal} " in build, build
    assert build.endswith(f"-f {machine.root}/Containerfile {machine.root}")
    assert f" strobe-{goal}:" in machine.calls("podman run")[0]


def test_an_image_that_cannot_be_made(machine):
    with_engine(machine, "docker", image=False, status=1)
    done = machine.run("tools/container", "make", "run")
    assert done.returncode == 125 and not machine.calls("docker run"), done
    assert "docker could not make the image strobe-run:" in done.stderr


def test_container_help(machine):
    for arguments, status in ((), 1), (("--help",), 0):
        done = machine.run("tools/container", *arguments)
        assert done.returncode == status and done.stdout.count("\n") > 5, done
