"""Finds the list of tasks in top's lines."""
TITLES = {"t": "ID Thr S", "H": "ID  Task S", "i": "ID Call sent",
          "e": "Vec Hot", "s": "Num      Calls", "1": "CPU  %busy"}


def titles(lines):
    """The index of the line with the columns' titles."""
    return next((y for y, line in enumerate(lines)
                 for title in TITLES.values()
                 if " ".join(title.split()) in " ".join(line.split())), None)


def names(lines):
    return [line.split()[-1] for line in lines[titles(lines) + 1:] if line]
