"""Damages files of every kind in the same ways. Case N of a name is always the same."""
import os
import random

# `make test T=damaged CASES=2000` runs that many of each kind (docs/reliability.md).
CASES = int(os.environ.get("CASES") or 0)
AT_ONCE_MAX = 4      # places that one case damages
BYTES_MAX = 300      # of a piece that is removed, repeated or overwritten
NUMBERS = (0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xfffffff0,
           0xffffffff, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


def cases(few):
    """The number of cases: CASES, or else so few."""
    return CASES or few


def piece(draw, data):
    start = draw.randrange(len(data))
    return start, min(len(data), start + draw.randrange(1, BYTES_MAX))


def change_bytes(draw, data, at):
    data[at] ^= draw.randrange(1, 256)


def set_number(draw, data, at):
    size = draw.choice((1, 2, 4, 8))
    at -= at % size
    number = draw.choice((*NUMBERS, len(data), at, draw.getrandbits(64)))
    data[at:at + size] = (number % (1 << 8 * size)).to_bytes(size, "little")


def add_to_number(draw, data, at):
    size = draw.choice((2, 4, 8))
    at -= at % size
    number = int.from_bytes(data[at:at + size], "little") + draw.choice((-8, -1, 1, 8))
    data[at:at + size] = (number % (1 << 8 * size)).to_bytes(size, "little")


def cut(_, data, at):
    del data[at:]


def remove(draw, data, _):
    start, end = piece(draw, data)
    del data[start:end]


def repeat(draw, data, at):
    start, end = piece(draw, data)
    data[at:at] = data[start:end]


def overwrite(draw, data, at):
    start, end = piece(draw, data)
    data[at:at + end - start] = data[start:end]


def random_bytes(draw, data, at):
    data[at:at + 16] = draw.randbytes(16)


HOW = (change_bytes, change_bytes, set_number, set_number, add_to_number, cut, remove,
       repeat, overwrite, random_bytes)


def damaged(name, number, data):
    """`data`, damaged in one to AT_ONCE_MAX places: a quarter of the cases in their first
    256 bytes, where heads and tables are."""
    draw = random.Random(f"{name} {number}")
    data = bytearray(data)
    first = draw.randrange(4) == 0
    for _ in range(draw.randrange(1, AT_ONCE_MAX + 1)):
        if data:
            at = draw.randrange(min(len(data), 256) if first else len(data))
            draw.choice(HOW)(draw, data, at)
    return bytes(data)
