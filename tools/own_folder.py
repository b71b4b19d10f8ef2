"""A folder for a tool's temporary files."""
import contextlib
import subprocess
import sys


@contextlib.contextmanager
def own_folder(name):
    """A folder that a shell removes when the tool has ended, even by SIGKILL: then its
    input ends. It has a session of its own, which no key of the terminal reaches."""
    with subprocess.Popen(
            ["sh", "-c", f'folder=$(mktemp -dt strobe-{name}-XXXXXXXX) && echo "$folder" &&'
             ' read -r _; rm -rf "$folder"'], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            start_new_session=True) as remover:
        folder = remover.stdout.readline().rstrip("\n")
        if not folder:
            sys.exit(f"tools/{name}: no folder can be made for temporary files")
        yield folder
