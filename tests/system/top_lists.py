"""Where top's list is in its lines, and who is in it."""
TITLES = {"t": "ID Thr S", "H": "ID  Task S", "i": "ID Call sent",
          "e": "Vec Hot", "s": "Num      Calls", "1": "CPU  %busy"}


def titles(lines):
    """The row of the columns' titles."""
    return next((y for y, line in enumerate(lines)
                 for title in TITLES.values()
                 if " ".join(title.split()) in " ".join(line.split())), None)


def names(lines):
    return [line.split()[-1] for line in lines[titles(lines) + 1:] if line]
