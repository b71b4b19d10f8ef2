"""Reads protocol buffer messages, as far as strobe's exports use them."""
import collections


def varint(data, at):
    number = shift = 0
    while True:
        byte, at = data[at], at + 1
        number |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def fields(data):
    """{field number: values} of a message; values are integers or bytes."""
    found, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        assert key & 7 in (0, 2), key
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        found[key >> 3].append(value)
    return found


def numbers(data):
    found, at = [], 0
    while at < len(data):
        number, at = varint(data, at)
        found.append(number)
    return found
