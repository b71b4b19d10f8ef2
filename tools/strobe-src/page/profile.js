// The profile: the data in the page, filters on it, and trees of calls made
// from what passes them.
//
// Samples and their period (time in ns, or events), which is their weight, are
// summed by node (a path of calls), "origin" (task, CPU, mode and event) and
// bin of time; tools/strobe-src/html_data.h says it field by field.

const MODES = ["user", "kernel", "irq", "idle"];
const IDLE = MODES.indexOf("idle");
const KERNEL = "[kernel]";

const FIELDS = 4; // of a count in a bin: node, origin, samples, period

function forEachPeriod(bin, take) {
  for (let i = 0; i < bin.length; i += FIELDS) {
    take(bin[i + 1], bin[i + 3]);
  }
}

// For each CPU and bin of time, the period of each mode of an event.
function countTimes(data, event) {
  const times = Array.from({ length: data.cpus }, () =>
    data.bins.map(() => new Array(MODES.length).fill(0)));
  data.bins.forEach((bin, b) => forEachPeriod(bin, (origin, period) => {
    if (data.origin.event[origin] === event) {
      times[data.origin.cpu[origin]][b][data.origin.mode[origin]] += period;
    }
  }));
  return times;
}

function countTasks(data, event) {
  const tasks = data.tasks.map((task, index) =>
    ({ index, id: task[0], name: task[1], period: 0 }));
  for (const bin of data.bins) {
    forEachPeriod(bin, (origin, period) => {
      if (data.origin.mode[origin] !== IDLE && data.origin.event[origin] === event) {
        tasks[data.origin.task[origin]].period += period;
      }
    });
  }
  return tasks;
}

function loadProfile(text) {
  const data = JSON.parse(text);
  const events = data.events.map((event, e) =>
    ({ ...event, times: countTimes(data, e), tasks: countTasks(data, e) }));
  return { ...data, events };
}

// What a filter is: event (an index), task (an index), program (a name), cpu,
// each or null; modes[mode]; bins [from, to).
function passes(profile, filter, origin) {
  const task = profile.origin.task[origin];
  return filter.event === profile.origin.event[origin] &&
    (filter.task === null || filter.task === task) &&
    (filter.program === null ||
      filter.program === profile.tasks[task][1]) &&
    (filter.cpu === null || filter.cpu === profile.origin.cpu[origin]) &&
    filter.modes[profile.origin.mode[origin]];
}

// The groups that stand beside each other at the bottom: a program, or what
// was idle in it. `of` has the group of each "origin", -1 of those left out.
function makeGroups(profile, filter) {
  const groups = [], numbers = new Map();
  const of = profile.origin.task.map((task, origin) => {
    if (!passes(profile, filter, origin)) {
      return -1;
    }
    const idle = profile.origin.mode[origin] === IDLE;
    const name = idle ? "idle" : profile.tasks[task][1];
    const key = `${idle ? "idle" : "program"}:${name}`;
    if (!numbers.has(key)) {
      numbers.set(key, groups.length);
      groups.push({ name, idle });
    }
    return numbers.get(key);
  });
  return { groups, of };
}

// A counting sort of the counts that pass, by group: the node, samples and
// period of each, and where the groups begin.
function* sortCounts(profile, filter, groups, of) {
  const begin = new Uint32Array(groups.length + 1);
  const bins = profile.bins.slice(...filter.bins);
  for (const bin of bins) {
    for (let i = 1; i < bin.length; i += FIELDS) {
      if (of[bin[i]] >= 0) {
        begin[of[bin[i]] + 1]++;
      }
      if (due()) {
        yield;
      }
    }
  }
  for (let g = 0; g < groups.length; g++) {
    begin[g + 1] += begin[g];
  }
  const at = begin.slice();
  const node = new Uint32Array(begin[groups.length]);
  const samples = new Float64Array(begin[groups.length]);
  const period = new Float64Array(begin[groups.length]);
  for (const bin of bins) {
    for (let i = 0; i < bin.length; i += FIELDS) {
      const g = of[bin[i + 1]];
      if (g >= 0) {
        node[at[g]] = bin[i];
        samples[at[g]] = bin[i + 2];
        period[at[g]++] = bin[i + 3];
      }
      if (due()) {
        yield;
      }
    }
  }
  return { node, samples, period, begin };
}

// The samples that pass: how many of which node and group, as parallel lists,
// each pair once, by group; group g has those from begin[g] to begin[g + 1].
function* countPairs(profile, filter) {
  const { groups, of } = makeGroups(profile, filter);
  const { node, samples, period, begin } =
    yield* sortCounts(profile, filter, groups, of);
  const place = new Uint32Array(profile.nodes.parent.length); // and 1
  const group = new Uint32Array(node.length);
  let count = 0, i = 0;
  for (let g = 0; g < groups.length; g++) {
    const first = count;
    for (; i < begin[g + 1]; i++) {
      const known = place[node[i]];
      if (known > first) {
        samples[known - 1] += samples[i];
        period[known - 1] += period[i];
      } else {
        node[count] = node[i];
        samples[count] = samples[i];
        period[count] = period[i];
        group[count++] = g;
        place[node[i]] = count;
      }
      if (due()) {
        yield;
      }
    }
  }
  return { groups, count, node, samples, period, group };
}

// Adds up a list of the pairs.
function sumPairs({ count }, list) {
  return list.subarray(0, count).reduce((sum, n) => sum + n, 0);
}

// --- trees ------------------------------------------------------------------

function symbolFrame(profile, symbol, idle, parent) {
  const image = profile.images[profile.symbols.image[symbol]];
  const kind = idle ? "idle" : image === KERNEL ? "kernel" : "user";
  return Object.assign(
    newFrame(profile.symbols.name[symbol], kind, image, parent), { symbol });
}

function groupFrame(group, parent) {
  return newFrame(group.name, group.idle ? "idle" : "program", "", parent);
}

// From the outermost callers: a forest of the nodes of each group that there
// are samples of, or of what they called.
function* makeCalls(profile, pairs) {
  const { parent: caller, symbol } = profile.nodes;
  const stamp = new Uint32Array(caller.length); // of what group `place` is
  const place = new Uint32Array(caller.length);
  const parent = [0], node = [0], group = [0], self = [0], samples = [0];
  const path = [];

  function add(above, n, g) {
    parent.push(above);
    node.push(n);
    group.push(g);
    self.push(0);
    samples.push(0);
    return parent.length - 1;
  }

  for (let i = 0, base = 0; i < pairs.count; i++) {
    const g = pairs.group[i];
    if (i === 0 || g !== pairs.group[i - 1]) {
      base = add(0, 0, g);
    }
    let n = pairs.node[i];
    for (; n !== 0 && stamp[n] !== g + 1; n = caller[n]) {
      path.push(n);
      if (due()) {
        yield;
      }
    }
    let at = n === 0 ? base : place[n];
    while (path.length > 0) {
      n = path.pop();
      at = add(at, n, g);
      stamp[n] = g + 1;
      place[n] = at;
    }
    self[at] += pairs.period[i];
    samples[at] += pairs.samples[i];
    if (due()) {
      yield;
    }
  }
  const value = self.slice();
  for (let at = value.length - 1; at > 0; at--) {
    value[parent[at]] += value[at];
    samples[parent[at]] += samples[at];
    if (due()) {
      yield;
    }
  }
  return yield* makeForestSource({ parent, value }, (at, above) => {
    const of = pairs.groups[group[at]];
    const frame = at === 0 ? newFrame("all", "root", "", null) :
      node[at] === 0 ? groupFrame(of, above) :
        symbolFrame(profile, symbol[node[at]], of.idle, above);
    return Object.assign(frame, { self: self[at], samples: samples[at] });
  });
}

// From the innermost functions. A frame has the pairs whose paths it is on, and
// where on them it is called from; a path ends in its program, whose frame
// has the samples as its own.
function makeInverted(profile, pairs) {
  const { parent, symbol } = profile.nodes;
  const programs = 2 * profile.symbols.name.length;
  const slot = new Uint32Array(programs + pairs.groups.length); // and 1
  const root = newFrame("all", "root", "", null);
  root.pairs = { ...pairs, from: 0, to: pairs.count };
  root.value = sumPairs(pairs, pairs.period);
  root.samples = sumPairs(pairs, pairs.samples);

  function keyOf(node, group) {
    return node === 0 ? programs + group :
      2 * symbol[node] + (pairs.groups[group].idle ? 1 : 0);
  }

  function make(key, above) {
    return key >= programs ? groupFrame(pairs.groups[key - programs], above) :
      symbolFrame(profile, key >> 1, (key & 1) === 1, above);
  }

  // The frames next to `above`, with their values; `keys` as they come.
  function* gather(above, keys) {
    const { node, samples, period, group, from, to } = above.pairs;
    const frames = [], sizes = [];
    for (let i = from; i < to; i++) {
      const key = keyOf(node[i], group[i]);
      if (slot[key] === 0) {
        slot[key] = keys.push(key);
        frames.push(make(key, above));
        sizes.push(0);
      }
      frames[slot[key] - 1].value += period[i];
      frames[slot[key] - 1].samples += samples[i];
      sizes[slot[key] - 1]++;
      if (due()) {
        yield;
      }
    }
    return { frames, sizes };
  }

  // A counting sort of the pairs by their frames, each a caller further.
  function* share(above, frames, sizes) {
    const { node, samples, period, group, from, to } = above.pairs;
    const sorted = {
      node: new Uint32Array(to - from),
      samples: new Float64Array(to - from),
      period: new Float64Array(to - from),
      group: new Uint32Array(to - from),
    };
    let begin = 0;
    frames.forEach((frame, f) => {
      frame.pairs = { ...sorted, from: begin, to: begin };
      begin += sizes[f];
    });
    for (let i = from; i < to; i++) {
      const { pairs: mine } = frames[slot[keyOf(node[i], group[i])] - 1];
      sorted.node[mine.to] = parent[node[i]];
      sorted.samples[mine.to] = samples[i];
      sorted.period[mine.to] = period[i];
      sorted.group[mine.to++] = group[i];
      if (due()) {
        yield;
      }
    }
  }

  function* children(above) {
    const keys = [];
    if (above.symbol < 0 && above.parent !== null) {
      return []; // a program
    }
    try {
      const { frames, sizes } = yield* gather(above, keys);
      yield* share(above, frames, sizes);
      above.pairs = null;
      frames.forEach((frame) => {
        frame.self = frame.symbol < 0 ? frame.value : 0;
      });
      return frames;
    } finally {
      keys.forEach((key) => (slot[key] = 0));
    }
  }

  return { root, children };
}
