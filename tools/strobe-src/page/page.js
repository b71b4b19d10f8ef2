// The page: its controls, and what they change.

const TOP_ROWS = 15;
const NS_PER_MS = 1e6;

const profile = loadProfile(byId("data").textContent);
const filter = {
  event: 0, task: null, program: null, cpu: null,
  modes: MODES.map((_, mode) => mode !== IDLE),
  bins: [0, profile.bins.length],
};
let inverted = false, zoom = null, term = null, symbol = null;
const chosenEvent = () => profile.events[filter.event];

function periodOf(mode) {
  return chosenEvent().times.flat()
    .reduce((sum, modes) => sum + modes[mode], 0);
}

// --- amounts ----------------------------------------------------------------

// Time in ms, or how many events.
function amount(period, { unit } = chosenEvent()) {
  return unit === "ns" ? `${count(period / NS_PER_MS)} ms` :
    `${count(period)} ${unit}`;
}

// The number of samples comes second: their weights differ.
function ofSamples(n) {
  return chosenEvent().samples === null ? "" : ` (${samples(n)})`;
}

// `self`: whether a frame's own time is known (not in an inverted tree).
function describeFrame(frame, root, self) {
  const { name, image, value, kind } = frame;
  const own = self && (kind === "user" || kind === "kernel") ?
    `, ${amount(frame.self)} of its own` : "";
  return `${name}${image ? ` (${image})` : ""}: ${amount(value)}, ` +
    `${percent(value, root.value)}${ofSamples(frame.samples)}${own}`;
}

// --- what is shown ----------------------------------------------------------

const graph = makeGraph(byId("graph"), {
  color: frameColor,
  describe: describeFrame,
  tell: (text) => (byId("details").textContent =
    text || "Point at a frame to see what it is."),
  zoomed: (path) => {
    zoom = path;
    byId("reset").disabled = path === null;
    remember();
  },
  followed: () => {
    remembering = true;
    remember();
  },
  searched: (next) => {
    term = next;
    byId("found").textContent = "";
    showFigures();
  },
  wrong: (why) => (byId("found").textContent = why),
  chosen: (frame) => {
    if (frame.symbol >= 0) {
      chooseFunction(frame.symbol);
    }
  },
});

// What the graph draws: the samples that pass the filter, and the frames that
// were made of them; null until there is a first picture.
let picture = null;
const counting = makeDesk((is) =>
  byId("figures").setAttribute("aria-busy", is));

function* makePicture() {
  const pairs = yield* countPairs(profile, filter);
  const source = inverted ? makeInverted(profile, pairs) :
    yield* makeCalls(profile, pairs);
  const cut = yield* grow(source, source.root, FRAMES_AT_ONCE);
  return { pairs, source, cut, period: source.root.value, sums: null };
}

function show() {
  graph.show(makePicture(), inverted, (made) => {
    const { total } = chosenEvent();
    picture = made;
    const part = made.period === total ? "all" : `${amount(made.period)} of`;
    byId("shown").textContent = `${part} ${amount(total)}` +
      ofSamples(made.source.root.samples);
    byId("range").textContent = timeline.label();
    byId("all-time").hidden = timeline.isAll();
    byId("cut").hidden = !made.cut;
    showFigures();
    remember();
  });
}

// --- figures of functions ---------------------------------------------------

function* makeFigures({ pairs, period: all }) {
  picture.sums ??= yield* sumNodes(profile, pairs);
  if (term !== null) {
    const n = yield* countFound(profile, pairs, term);
    byId("found").textContent = `found in ${amount(n)}, ${percent(n, all)}`;
  }
  picture.functions ??= yield* sumFunctions(profile, picture.sums);
  showTop(hottest(profile, picture.functions, TOP_ROWS), all);
  if (symbol !== null) {
    showCalls(yield* countCalls(profile, picture.sums, symbol));
  }
}

function showFigures() {
  if (picture !== null) {
    counting(makeFigures(picture), () => {});
  }
}

function functionButton({ name, image }, press) {
  const button = make("button", [name], "link");
  button.type = "button";
  button.title = image;
  button.addEventListener("click", press);
  return make("td", [button, make("span", [image], "image")]);
}

function showTop(functions, all) {
  byId("top").tBodies[0].replaceChildren(...functions.map((f) =>
    make("tr", [make("td", [percent(f.self, all)]),
      make("td", [percent(f.total, all)]),
      functionButton(f, () => {
        chooseFunction(f.symbol);
        searchFor(literally(f.name));
      })])));
}

function chooseFunction(next) {
  symbol = next;
  showFigures();
  remember();
}

// A table of functions by time; `first` are rows that come before them.
function fillCalls(table, calls, total, first) {
  const rows = [...calls].sort((a, b) => b[1] - a[1]).map(([s, n]) => [n,
    s === OUTERMOST ? make("td", ["none: it is the outermost"], "image") :
      functionButton(functionOf(profile, s), () => chooseFunction(s))]);
  table.tBodies[0].replaceChildren(...[...first, ...rows].map(([n, cell]) =>
    make("tr", [make("td", [amount(n)]), make("td", [percent(n, total)]),
      cell])));
}

function showCalls({ callers, callees }) {
  const { name, image } = functionOf(profile, symbol);
  const self = picture.functions.self[symbol];
  const total = picture.functions.total[symbol];
  byId("chosen").replaceChildren(`${name} `, make("span", [image], "image"));
  byId("chosen-amount").textContent =
    `is on the path for ${amount(total)}, ${percent(total, picture.period)}`;
  byId("calls").hidden = false;
  byId("calls-hint").hidden = true;
  fillCalls(byId("callers"), callers, total, []);
  fillCalls(byId("callees"), callees, total,
    self > 0 ? [[self, make("td", ["itself"], "image")]] : []);
}

const timeline = makeTimeline(byId("timeline"), profile, (bins) => {
  filter.bins = bins;
  show();
});

// --- controls ---------------------------------------------------------------

function searchFor(text) {
  byId("search").value = text;
  graph.search(text);
  remember();
}

function toggleInverted() {
  inverted = !inverted;
  byId("invert").setAttribute("aria-pressed", inverted);
  show();
}

function showTitle() {
  document.title = `${profile.title}: Strobe flame graph`;
  byId("title").textContent = profile.title;
}

function showFacts() {
  byId("facts").replaceChildren(...chosenEvent().facts.map(([name, text]) =>
    make("div", [make("dt", [name]), make("dd", [text])])));
}

// All tasks that any event has hit; then each program, and its tasks if they
// are several.
function fillTasks() {
  const select = byId("task");
  const value = select.value;
  const programs = new Map();
  for (const task of chosenEvent().tasks.filter((t) =>
    profile.events.some((event) => event.tasks[t.index].period > 0))) {
    programs.set(task.name, [...programs.get(task.name) ?? [], task]);
  }
  const sum = (tasks) => tasks.reduce((n, t) => n + t.period, 0);
  const sorted = [...programs].sort((a, b) => sum(b[1]) - sum(a[1]));
  select.replaceChildren(new Option("all", "all"));
  for (const [name, tasks] of sorted) {
    const which = tasks.length === 1 ? `task ${tasks[0].id}` :
      `${tasks.length} tasks`;
    select.add(new Option(`${name}, ${which}: ${amount(sum(tasks))}`,
      `program ${name}`));
    for (const task of tasks.length > 1 ? tasks : []) {
      select.add(new Option(`\u2003task ${task.id}: ${amount(task.period)}`,
        `task ${task.index}`));
    }
  }
  select.value = value || "all";
}

function chooseTask() {
  const [kind, ...rest] = byId("task").value.split(" ");
  filter.program = kind === "program" ? rest.join(" ") : null;
  filter.task = kind === "task" ? Number(rest[0]) : null;
}

function watchTasks() {
  byId("task").addEventListener("change", () => {
    chooseTask();
    show();
  });
}

function chooseCpu() {
  const { value } = byId("cpu");
  filter.cpu = value === "" ? null : Number(value);
}

function fillCpus() {
  const select = byId("cpu");
  select.add(new Option("all", ""));
  for (let cpu = 0; cpu < profile.cpus; cpu++) {
    select.add(new Option(`CPU ${cpu}`, cpu));
  }
  select.addEventListener("change", () => {
    chooseCpu();
    show();
  });
}

function makeModes() {
  if (periodOf(IDLE) === chosenEvent().total) {
    filter.modes[IDLE] = true;
  }
  MODES.forEach((name, mode) => {
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = filter.modes[mode];
    box.id = `mode-${name}`;
    box.addEventListener("change", () => {
      filter.modes[mode] = box.checked;
      show();
    });
    byId("modes").append(make("label", [box, make("i", [], name), name,
      make("small", [])]));
  });
}

function showModes() {
  byId("modes").querySelectorAll("small").forEach((share, mode) => {
    share.textContent = percent(periodOf(mode), chosenEvent().total);
  });
}

// Everything known about one event; the choice stays.
function showEvent() {
  showFacts();
  fillTasks();
  showModes();
  timeline.showTimes(chosenEvent().times, chosenEvent().unit);
  show();
}

function fillEvents() {
  const select = byId("event");
  profile.events.forEach((event, number) =>
    select.add(new Option(`${event.name}: ${amount(event.total, event)}`,
      number)));
  select.parentElement.hidden = profile.events.length === 1;
  select.addEventListener("change", () => {
    filter.event = Number(select.value);
    showEvent();
  });
}

// --- what is chosen, in the page's address ----------------------------------

const atFirst = () => MODES.filter((_, mode) => mode !== IDLE ||
  periodOf(IDLE) === chosenEvent().total).join(" ");
const chosenModes = () =>
  MODES.filter((_, mode) => filter.modes[mode]).join(" ");
let remembering = false; // not while it is being restored

// What is as at first is not in it.
function remember() {
  if (!remembering) {
    return;
  }
  const words = new URLSearchParams();
  const add = (key, value, first) => {
    if (value !== first) {
      words.set(key, value);
    }
  };
  add("search", byId("search").value.trim(), "");
  add("event", byId("event").value, "0");
  add("task", byId("task").value, "all");
  add("cpu", byId("cpu").value, "");
  add("samples", chosenModes(), atFirst());
  add("inverted", String(inverted), "false");
  add("time", filter.bins.join("-"), `0-${profile.bins.length}`);
  add("zoom", JSON.stringify(zoom), "null");
  add("function", String(symbol), "null");
  const text = String(words);
  history.replaceState(null, "", text ? `#${text}` : location.pathname);
}

// A choice that there is not is passed over.
function choose(select, value) {
  if ([...select.options].some((option) => option.value === value)) {
    select.value = value;
  }
}

function restore() {
  const words = new URLSearchParams(location.hash.slice(1));
  const word = (key, first) => words.get(key) ?? first;
  remembering = false;
  choose(byId("event"), word("event", "0"));
  filter.event = Number(byId("event").value);
  inverted = word("inverted", "false") === "true";
  byId("invert").setAttribute("aria-pressed", inverted);
  const modes = word("samples", atFirst()).split(" ");
  MODES.forEach((name, mode) => {
    filter.modes[mode] = modes.includes(name);
    byId(`mode-${name}`).checked = filter.modes[mode];
  });
  fillTasks();
  choose(byId("task"), word("task", "all"));
  chooseTask();
  choose(byId("cpu"), word("cpu", ""));
  chooseCpu();
  const last = profile.bins.length;
  const [from, to] = word("time", `0-${last}`).split("-").map(Number);
  const sound = Number.isInteger(from) && Number.isInteger(to) &&
    from >= 0 && from < to && to <= last;
  timeline.choose(...sound ? [from, to] : [0, last]);
  const chosen = Number(word("function", "none"));
  symbol = Object.hasOwn(profile.symbols.name, chosen) ? chosen : null;
  byId("calls").hidden = symbol === null;
  byId("calls-hint").hidden = symbol !== null;
  searchFor(word("search", ""));
  graph.zoomTo(readPath(word("zoom", "null")));
  showEvent();
}

showTitle();
fillEvents();
watchTasks();
fillCpus();
makeModes();
watchSearch(searchFor);
byId("controls").addEventListener("submit", (event) => event.preventDefault());
byId("invert").addEventListener("click", toggleInverted);
byId("reset").addEventListener("click", () => graph.zoomOut());
byId("all-time").addEventListener("click", () => timeline.all());
watchKeys(graph, searchFor, toggleInverted);
addEventListener("hashchange", restore);
restore();
