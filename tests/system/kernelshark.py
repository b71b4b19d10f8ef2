"""Runs KernelShark, on a display of its own, and reads what its window shows: what it has in
its list and which graphs it draws (a plugin, kernelshark.c, writes that to a file), and the
pixels of the screen."""
import collections
import os
import struct
import subprocess
import tempfile
import time

from machine import PATIENCE, ROOT

SOURCE = f"{ROOT}/tests/system/kernelshark.c"
WIDTH, HEIGHT = 1280, 1024
# Settings that leave out its warning to root, which waits for an answer.
SETTINGS = "[General]\nnoRootWarn=true\n"
Entry = collections.namedtuple("Entry", "cpu pid ns task event info")


def compile_plugin(path):
    # KernelShark's headers need more than C11.
    subprocess.run(["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
                    "-isystem", "/usr/include/kernelshark", "-o", path, SOURCE], check=True)


class KernelShark:
    """Its window, with a graph for each of these CPUs and tasks, from top to bottom. The
    file's name must end with ".dat": else KernelShark does not know what it is."""

    def __init__(self, path, cpus, tasks):
        # Qt wants a folder that only its user can read.
        self.folder = tempfile.TemporaryDirectory(prefix="strobe-kernelshark-")
        self.graphs = [("cpu", n) for n in cpus] + [("task", n) for n in tasks]
        self.server = self.window = None
        try:
            compile_plugin(self.file("plugin.so"))
            with open(self.file("setting.ini"), "w") as file:
                file.write(SETTINGS)
            display = self.start_server()
            self.start_window(display, path, cpus, tasks)
        except BaseException:
            self.close()
            raise

    def file(self, name):
        return f"{self.folder.name}/{name}"

    def start_server(self):
        """Returns the display. (The server writes its number when it is ready.)"""
        read, write = os.pipe()
        with open(self.file("server.log"), "w") as log:
            self.server = subprocess.Popen(
                ["Xvfb", "-displayfd", str(write), "-screen", "0", f"{WIDTH}x{HEIGHT}x24",
                 "-nolisten", "tcp", "-terminate", "-fbdir", self.folder.name],
                pass_fds=[write], stdout=log, stderr=log)
        os.close(write)
        with open(read) as file:
            number = file.readline().strip()
        assert number, self.read("server.log")
        return f":{number}"

    def start_window(self, display, path, cpus, tasks):
        environment = {**os.environ, "DISPLAY": display, "HOME": self.folder.name,
                       "KS_USER_CACHE_DIR": self.folder.name, "LIBGL_ALWAYS_SOFTWARE": "1",
                       "XDG_RUNTIME_DIR": self.folder.name, "QT_QPA_PLATFORM": "xcb",
                       "KERNELSHARK_SHOWS": self.file("shows")}
        with open(self.file("window.log"), "w") as log:
            self.window = subprocess.Popen(
                ["kernelshark", "-geometry", f"{WIDTH}x{HEIGHT}+0+0", "-p",
                 self.file("plugin.so"), "--cpu", ",".join(map(str, cpus)), "--pid",
                 ",".join(map(str, tasks)), "-i", path],
                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.window:
            self.window.kill()
            self.window.wait()
        if self.server:
            self.server.terminate()  # it removes its lock
            self.server.wait()
        self.folder.cleanup()

    def read(self, name):
        with open(self.file(name), errors="replace") as file:
            return file.read()

    def wait(self, condition):
        """Waits until condition() is true; returns its value."""
        deadline = time.monotonic() + PATIENCE
        while not (value := condition()):
            log = self.read("window.log")
            assert self.window.poll() is None and "ERROR" not in log and \
                time.monotonic() < deadline, log
            time.sleep(0.1)
        return value

    def shown(self):
        """The list's entries, and {graph: its width in pixels}, when all graphs are drawn."""
        return self.wait(self.read_shown)

    def read_shown(self):
        if not os.path.exists(self.file("shows")):
            return None
        lines = [line.split("\t") for line in self.read("shows").split("\n")[:-1]]
        entries = [Entry(*map(int, line[1:4]), *line[4:]) for line in lines
                   if line[0] == "entry"]
        graphs = {(line[1], int(line[2])): int(line[3]) for line in lines
                  if line[0] == "graph"}
        return (entries, graphs) if set(self.graphs) <= graphs.keys() else None

    def bands(self, width):
        """Of each graph, for the screen's rows between its base line and what is above: how
        many pixels have a colour. The axis above all and the base lines are black and `width`
        pixels long; without a thread that runs a graph is black and white. None while not all
        graphs are on the screen."""
        rows = [collections.Counter(row) for row in self.screen()]
        lines = [y for y, row in enumerate(rows) if row[0] > 0.9 * width]
        # Between lines that do not follow each other.
        bands = [[coloured(row) for row in rows[above + 1:below]]
                 for above, below in zip(lines, lines[1:]) if below > above + 1]
        return bands if len(bands) == len(self.graphs) else None

    def screen(self):
        """The screen's rows of pixels, 0xRRGGBB. (A file in xwd's format: X11/XWDFile.h.)"""
        with open(self.file("Xvfb_screen0"), "rb") as file:
            data = file.read()
        head = struct.unpack(">25I", data[:100])
        bytes_per_row, colors = head[12], head[19]
        assert head[7] == 0 and head[11] == 32, "little-endian words"
        begin = head[0] + 12 * colors
        return [[pixel & 0xffffff for pixel in row] for row in (
            struct.unpack_from(f"<{WIDTH}I", data, begin + y * bytes_per_row)
            for y in range(HEIGHT))]


def coloured(row):
    """How many pixels are neither black, white nor grey."""
    return sum(n for pixel, n in row.items() if max(pixel.to_bytes(4, "big")[1:]) -
               min(pixel.to_bytes(4, "big")[1:]) > 60)
