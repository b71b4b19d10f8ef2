"""History of failed tries of real-time tests on this machine: an append-only file
with a line of JSON for each record."""
import json
import os
import subprocess
import time

STATE = os.environ.get("XDG_STATE_HOME") or \
    os.path.expanduser("~/.local/state")
PATH = os.environ.get("TEST_HISTORY") or f"{STATE}/strobe/test-history"


def commit():
    done = subprocess.run(["git", "describe", "--always", "--dirty"],
                          capture_output=True, text=True)
    return done.stdout.strip()


def add(**record):
    os.makedirs(os.path.dirname(PATH), exist_ok=True)
    record = {"time": int(time.time()), "commit": commit(), **record}
    with open(PATH, "a") as file:  # one write: runs may be concurrent
        file.write(json.dumps(record) + "\n")


def read():
    try:
        with open(PATH) as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []
