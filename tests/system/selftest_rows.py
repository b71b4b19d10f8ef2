"""The table that selftest prints."""
import re


def rows(text):
    """{check: (result, text)} of selftest's table."""
    return {m[1].strip(): (m[2].strip(), m[3]) for m in re.finditer(
        r"^(.{16})  (ok|not there|WRONG) *  (.*)$", text, re.MULTILINE)}
