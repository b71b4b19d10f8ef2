// Functions: the hottest ones, and the callers and callees of one, by the period
// of samples. A sample counts once in each figure, even if its path has the
// function several times.

// Of each node the period of samples that end in it, and of those whose path
// has it.
function* sumNodes(profile, pairs) {
  const { parent } = profile.nodes;
  const self = new Float64Array(parent.length);
  for (let i = 0; i < pairs.count; i++) {
    self[pairs.node[i]] += pairs.period[i];
    if (due()) {
      yield;
    }
  }
  const total = self.slice();
  for (let node = parent.length - 1; node > 0; node--) {
    total[parent[node]] += total[node];
    if (due()) {
      yield;
    }
  }
  return { self, total };
}

// For each node whether its function is not also further out on its path.
function* findOutermost({ nodes: { parent, symbol }, symbols }) {
  const first = new Uint32Array(parent.length);
  const next = new Uint32Array(parent.length);
  for (let node = parent.length - 1; node > 0; node--) {
    next[node] = first[parent[node]];
    first[parent[node]] = node;
    if (due()) {
      yield;
    }
  }
  // In depth, by these links: how often each function is on the path.
  const outermost = new Uint8Array(parent.length);
  const times = new Uint32Array(symbols.name.length);
  for (let node = first[0]; node !== 0;) {
    outermost[node] = times[symbol[node]]++ === 0 ? 1 : 0;
    if (first[node] !== 0) {
      node = first[node];
    } else {
      for (; node !== 0 && next[node] === 0; node = parent[node]) {
        times[symbol[node]]--;
      }
      if (node !== 0) {
        times[symbol[node]]--;
        node = next[node];
      }
    }
    if (due()) {
      yield;
    }
  }
  return outermost;
}

function functionOf(profile, symbol) {
  return {
    symbol,
    name: profile.symbols.name[symbol],
    image: profile.images[profile.symbols.image[symbol]],
  };
}

// The period of each function itself, and of the paths that have it.
function* sumFunctions(profile, sums) {
  const { parent, symbol } = profile.nodes;
  const self = new Float64Array(profile.symbols.name.length);
  const total = new Float64Array(profile.symbols.name.length);
  profile.outermost ??= yield* findOutermost(profile);
  for (let node = 1; node < parent.length; node++) {
    self[symbol[node]] += sums.self[node];
    total[symbol[node]] += profile.outermost[node] * sums.total[node];
    if (due()) {
      yield;
    }
  }
  return { self, total };
}

function hottest(profile, { self, total }, rows) {
  return [...self.keys()].filter((symbol) => self[symbol] > 0)
    .sort((a, b) => self[b] - self[a]).slice(0, rows)
    .map((symbol) => ({
      ...functionOf(profile, symbol),
      self: self[symbol],
      total: total[symbol],
    }));
}

const OUTERMOST = -1; // instead of a caller

// Who calls function `chosen` itself, and whom it calls itself, as Maps of
// symbols to the period of samples that saw the call. On a path from a node
// outwards, nearest[node] is the next node of `chosen`, and via[node] the one that it
// calls there.
function* countCalls(profile, { total }, chosen) {
  const { parent, symbol } = profile.nodes;
  const nearest = new Uint32Array(parent.length);
  const via = new Uint32Array(parent.length);
  const callers = new Map(), callees = new Map();
  const callerOf = (node) =>
    parent[node] === 0 ? OUTERMOST : symbol[parent[node]];
  const add = (map, key, n) => n > 0 && map.set(key, (map.get(key) ?? 0) + n);

  // Whether the same call is further out on the path, from `node` outwards.
  function* isAgain(node, same) {
    for (let n = node; n !== 0; n = nearest[n]) {
      if (due()) {
        yield;
      }
      if (same(n)) {
        return true;
      }
    }
    return false;
  }

  for (let node = 1; node < parent.length; node++) {
    const above = parent[node];
    const called = above !== 0 && symbol[above] === chosen;
    nearest[node] = called ? above : nearest[above];
    via[node] = called ? node : via[above];
    if (total[node] > 0 && symbol[node] === chosen) {
      const caller = callerOf(node);
      if (!(yield* isAgain(nearest[node], (n) => callerOf(n) === caller))) {
        add(callers, caller, total[node]);
      }
    }
    if (total[node] > 0 && called && !(yield* isAgain(above,
      (n) => nearest[n] !== 0 && symbol[via[n]] === symbol[node]))) {
      add(callees, symbol[node], total[node]);
    }
    if (due()) {
      yield;
    }
  }
  return { callers, callees };
}

// The period of samples whose path, or the program at its end, has a name that
// `term` finds.
function* countFound(profile, pairs, term) {
  const { parent, symbol } = profile.nodes;
  const named = profile.symbols.name.map((name) => term.test(name));
  const program = pairs.groups.map(({ name }) => term.test(name));
  const found = new Uint8Array(parent.length);
  let sum = 0;
  for (let node = 1; node < parent.length; node++) {
    found[node] = named[symbol[node]] || found[parent[node]] ? 1 : 0;
    if (due()) {
      yield;
    }
  }
  for (let i = 0; i < pairs.count; i++) {
    if (program[pairs.group[i]] || found[pairs.node[i]]) {
      sum += pairs.period[i];
    }
    if (due()) {
      yield;
    }
  }
  return sum;
}
