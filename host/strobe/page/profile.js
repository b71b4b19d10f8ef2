// The profile: the data in the page, filters on it, and trees of calls made
// from what passes them.
//
// Samples are counted by node (a path of calls), "who" (task, CPU, mode and
// event) and bin of time; host/strobe/html_data.h says it field by field.

const MODES = ["user", "kernel", "irq", "idle"];
const IDLE = MODES.indexOf("idle");
const KERNEL = "[kernel]";

// A bin lists node, who, count, node, who, count, ...
function forEachCount(bin, take) {
  for (let i = 0; i < bin.length; i += 3) {
    take(bin[i], bin[i + 1], bin[i + 2]);
  }
}

// For each CPU and bin of time, how many samples of each mode an event has.
function countTimes(data, event) {
  const times = Array.from({ length: data.cpus }, () =>
    data.bins.map(() => new Array(MODES.length).fill(0)));
  data.bins.forEach((bin, b) => forEachCount(bin, (_node, who, n) => {
    if (data.who.event[who] === event) {
      times[data.who.cpu[who]][b][data.who.mode[who]] += n;
    }
  }));
  return times;
}

function countTasks(data, event) {
  const tasks = data.tasks.map((task, index) =>
    ({ index, id: task[0], name: task[1], samples: 0 }));
  for (const bin of data.bins) {
    forEachCount(bin, (_node, who, n) => {
      if (data.who.mode[who] !== IDLE && data.who.event[who] === event) {
        tasks[data.who.task[who]].samples += n;
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

// What a filter is: event (an index), task (an index), program (a name), cpu, each or null;
// modes[mode]; bins [from, to).
function passes(profile, filter, who) {
  const task = profile.who.task[who];
  return filter.event === profile.who.event[who] &&
    (filter.task === null || filter.task === task) &&
    (filter.program === null ||
      filter.program === profile.tasks[task][1]) &&
    (filter.cpu === null || filter.cpu === profile.who.cpu[who]) &&
    filter.modes[profile.who.mode[who]];
}

// The counts that pass, as a Map of groups (a program, or idle) to Maps of
// nodes to samples.
function countGroups(profile, filter) {
  const groups = new Map();
  const group = profile.who.task.map((task, who) => {
    if (!passes(profile, filter, who)) {
      return null;
    }
    const idle = profile.who.mode[who] === IDLE;
    const name = idle ? "idle" : profile.tasks[task][1];
    const key = `${idle ? "idle" : "program"}:${name}`;
    if (!groups.has(key)) {
      groups.set(key, { name, idle, nodes: new Map() });
    }
    return groups.get(key).nodes;
  });
  for (let b = filter.bins[0]; b < filter.bins[1]; b++) {
    forEachCount(profile.bins[b], (node, who, n) => {
      const nodes = group[who];
      if (nodes !== null) {
        nodes.set(node, (nodes.get(node) ?? 0) + n);
      }
    });
  }
  return [...groups.values()];
}

// --- trees ------------------------------------------------------------------

function newFrame(name, kind, image) {
  return { name, kind, image, self: 0, value: 0, children: [] };
}

function symbolFrame(profile, symbol, idle) {
  const image = profile.images[profile.symbols.image[symbol]];
  const kind = idle ? "idle" : image === KERNEL ? "kernel" : "user";
  return newFrame(profile.symbols.name[symbol], kind, image);
}

function groupFrame(group) {
  return newFrame(group.name, group.idle ? "idle" : "program", "");
}

// From the outermost callers: each node's frame hangs on its parent's.
function addCallers(profile, root, group) {
  const frames = new Map();
  const frameOf = (node) => {
    if (node === 0) {
      return base;
    }
    let frame = frames.get(node);
    if (frame === undefined) {
      frame = symbolFrame(profile, profile.nodes.symbol[node], group.idle);
      frames.set(node, frame);
      frameOf(profile.nodes.parent[node]).children.push(frame);
    }
    return frame;
  };
  const base = groupFrame(group);
  root.children.push(base);
  for (const [node, n] of group.nodes) {
    frameOf(node).self += n;
  }
}

function childFor(parent, key, make) {
  parent.byKey ??= new Map();
  let child = parent.byKey.get(key);
  if (child === undefined) {
    child = make();
    parent.byKey.set(key, child);
    parent.children.push(child);
  }
  return child;
}

// From the innermost functions: `self` is where a path to the program ends,
// so that a frame's value is the sum of its children's.
function addInverted(profile, root, group) {
  const { parent, symbol } = profile.nodes;
  for (const [leaf, n] of group.nodes) {
    let frame = root;
    for (let node = leaf; node !== 0; node = parent[node]) {
      const key = symbol[node] * 2 + (group.idle ? 1 : 0);
      frame = childFor(frame, key, () =>
        symbolFrame(profile, symbol[node], group.idle));
    }
    childFor(frame, `in ${group.name}`, () => groupFrame(group)).self += n;
  }
}

// Sums and sorts, children first; without recursion, for chains may be deep.
function sumFrames(root) {
  const order = [root];
  for (let i = 0; i < order.length; i++) {
    order.push(...order[i].children);
  }
  for (const frame of order.reverse()) {
    frame.value = frame.children.reduce((sum, c) => sum + c.value, frame.self);
    frame.children.sort((a, b) =>
      b.value - a.value || (a.name < b.name ? -1 : 1));
    delete frame.byKey;
  }
  return root;
}

function makeTree(profile, filter, inverted) {
  const root = newFrame("all", "root", "");
  const add = inverted ? addInverted : addCallers;
  for (const group of countGroups(profile, filter)) {
    add(profile, root, group);
  }
  return sumFrames(root);
}

// Functions by samples of their own; `total` counts a sample once in each
// function that its chain comes by.
function hottest(profile, filter, rows) {
  const { parent, symbol } = profile.nodes;
  const self = new Map(), total = new Map();
  const add = (map, key, n) => map.set(key, (map.get(key) ?? 0) + n);
  for (const group of countGroups(profile, filter)) {
    for (const [leaf, n] of group.nodes) {
      const seen = new Set();
      for (let node = leaf; node !== 0; node = parent[node]) {
        seen.add(symbol[node]);
      }
      if (leaf !== 0) {
        add(self, symbol[leaf], n);
      }
      seen.forEach((s) => add(total, s, n));
    }
  }
  return [...self].sort((a, b) => b[1] - a[1]).slice(0, rows)
    .map(([s, n]) => ({
      name: profile.symbols.name[s],
      image: profile.images[profile.symbols.image[s]],
      self: n,
      total: total.get(s),
    }));
}
