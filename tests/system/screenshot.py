"""What the framebuffer's console shows: a screen dump of QEMU, read by the glyphs
that the kernel was built with."""
from machine import ROOT

WIDTH, HEIGHT = 8, 16
PALETTE = [0x000000, 0x0000aa, 0x00aa00, 0x00aaaa, 0xaa0000, 0xaa00aa, 0xaa5500,
           0xaaaaaa, 0x555555, 0x5555ff, 0x55ff55, 0x55ffff, 0xff5555, 0xff55ff,
           0xffff55, 0xffffff]
GREY, YELLOW = 0xaaaaaa, 0xffff55
CURSOR_LINES = (13, 14)


def glyphs():
    """Characters (of code page 437) by their glyphs; the first one of equal glyphs."""
    with open(f"{ROOT}/build/font/glyphs", "rb") as file:
        data = file.read()
    found = {}
    for code in [32, *range(33, 127), *range(256)]:
        found.setdefault(data[code * HEIGHT:(code + 1) * HEIGHT], code)
    return found


class Shot:
    """A dump: cells of `scale` pixels a dot."""

    def __init__(self, path, scale=1):
        with open(path, "rb") as file:
            kind, size, depth, self.pixels = file.read().split(b"\n", 3)
        assert (kind, depth) == (b"P6", b"255")
        self.width, self.height = map(int, size.split())
        self.scale = scale
        self.glyphs = glyphs()

    def pixel(self, x, y):
        at = (y * self.width + x) * 3
        return int.from_bytes(self.pixels[at:at + 3], "big")

    def dots(self, row, column):
        """The colours of a cell's dots, line by line."""
        return [[self.pixel((column * WIDTH + x) * self.scale,
                            (row * HEIGHT + y) * self.scale)
                 for x in range(WIDTH)] for y in range(HEIGHT)]

    def cell(self, row, column, background=0):
        """The cell's character, or None if it is no glyph, and its colour."""
        dots = self.dots(row, column)
        colours = {dot for line in dots for dot in line} - {background}
        if len(colours) > 1:
            return None, None
        glyph = bytes(sum(0x80 >> x for x in range(WIDTH) if line[x] != background)
                      for line in dots)
        return self.glyphs.get(glyph), (colours or {None}).pop()

    def line(self, row):
        """A row's text, without blanks at its end; \0 is what is no glyph."""
        count = self.width // (WIDTH * self.scale)
        codes = [self.cell(row, column)[0] or 0 for column in range(count)]
        return bytes(codes).decode("cp437").rstrip(" ")

    def lines(self):
        return [self.line(row) for row in range(self.height // (HEIGHT * self.scale))]
