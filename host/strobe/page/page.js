// The page: its controls, and what they change.

const TYPING_MS = 120;
const TOP_ROWS = 15;

const byId = (id) => document.getElementById(id);
const profile = loadProfile(byId("data").textContent);
const filter = {
  event: 0, task: null, program: null, cpu: null,
  modes: MODES.map((_, mode) => mode !== IDLE),
  bins: [0, profile.bins.length],
};
let inverted = false;
const chosenEvent = () => profile.events[filter.event];

function make(tag, parts, ...classes) {
  const element = document.createElement(tag);
  element.append(...parts);
  element.classList.add(...classes);
  return element;
}

function samplesOf(mode) {
  return chosenEvent().times.flat().reduce((sum, modes) => sum + modes[mode], 0);
}

// --- what is shown ----------------------------------------------------------

const graph = makeGraph(byId("graph"), {
  tell: (text) => (byId("details").textContent =
    text || "Point at a frame to see what it is."),
  zoomed: (name) => (byId("reset").disabled = name === null),
  found: (n) => (byId("found").textContent = n === null ? "" :
    `found in ${samples(n)}, ${percent(n, shown)}`),
});
let shown = 0;

function showTop() {
  const rows = hottest(profile, filter, TOP_ROWS).map((f) => {
    const name = make("button", [f.name], "link");
    name.type = "button";
    name.title = f.image;
    name.addEventListener("click", () => searchFor(f.name));
    return make("tr", [make("td", [percent(f.self, shown)]),
      make("td", [percent(f.total, shown)]),
      make("td", [name, make("span", [f.image], "image")])]);
  });
  byId("top").tBodies[0].replaceChildren(...rows);
}

function show() {
  const tree = makeTree(profile, filter, inverted);
  const { total } = chosenEvent();
  shown = tree.value;
  byId("shown").textContent = shown === total ? `all ${samples(shown)}` :
    `${count(shown)} of ${samples(total)}`;
  byId("range").textContent = timeline.label();
  byId("all-time").hidden = timeline.isAll();
  graph.draw(tree, inverted);
  showTop();
}

const timeline = makeTimeline(byId("timeline"), profile, (bins) => {
  filter.bins = bins;
  show();
});

// --- controls ---------------------------------------------------------------

function searchFor(text) {
  byId("search").value = text;
  graph.search(text);
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
    profile.events.some((event) => event.tasks[t.index].samples > 0))) {
    programs.set(task.name, [...programs.get(task.name) ?? [], task]);
  }
  const sum = (tasks) => tasks.reduce((n, t) => n + t.samples, 0);
  const sorted = [...programs].sort((a, b) => sum(b[1]) - sum(a[1]));
  select.replaceChildren(new Option("all", "all"));
  for (const [name, tasks] of sorted) {
    const which = tasks.length === 1 ? `task ${tasks[0].id}` :
      `${tasks.length} tasks`;
    select.add(new Option(`${name}, ${which}: ${count(sum(tasks))}`,
      `program ${name}`));
    for (const task of tasks.length > 1 ? tasks : []) {
      select.add(new Option(`\u2003task ${task.id}: ${count(task.samples)}`,
        `task ${task.index}`));
    }
  }
  select.value = value || "all";
}

function watchTasks() {
  const select = byId("task");
  select.addEventListener("change", () => {
    const [kind, ...rest] = select.value.split(" ");
    filter.program = kind === "program" ? rest.join(" ") : null;
    filter.task = kind === "task" ? Number(rest[0]) : null;
    show();
  });
}

function fillCpus() {
  const select = byId("cpu");
  select.add(new Option("all", ""));
  for (let cpu = 0; cpu < profile.cpus; cpu++) {
    select.add(new Option(`CPU ${cpu}`, cpu));
  }
  select.addEventListener("change", () => {
    filter.cpu = select.value === "" ? null : Number(select.value);
    show();
  });
}

function makeModes() {
  if (samplesOf(IDLE) === chosenEvent().total) {
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
    share.textContent = percent(samplesOf(mode), chosenEvent().total);
  });
}

// All that is told of one event; what is chosen stays.
function showEvent() {
  showFacts();
  fillTasks();
  showModes();
  timeline.showTimes(chosenEvent().times);
  show();
}

function fillEvents() {
  const select = byId("event");
  profile.events.forEach((event, number) =>
    select.add(new Option(`${event.name}: ${count(event.total)}`, number)));
  select.parentElement.hidden = profile.events.length === 1;
  select.addEventListener("change", () => {
    filter.event = Number(select.value);
    showEvent();
  });
}

function watchSearch() {
  let waiting = 0;
  byId("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => graph.search(byId("search").value), TYPING_MS);
  });
}

// Keys that work wherever nothing is typed.
function press(event) {
  const typing = event.target.matches("input[type=search], select");
  if (event.key === "Escape") {
    searchFor("");
    graph.zoomOut();
  } else if (typing || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  } else if (event.key === "/") {
    byId("search").focus();
    event.preventDefault();
  } else if (event.key === "i") {
    toggleInverted();
  }
}

showTitle();
fillEvents();
watchTasks();
fillCpus();
makeModes();
watchSearch();
byId("controls").addEventListener("submit", (event) => event.preventDefault());
byId("invert").addEventListener("click", toggleInverted);
byId("reset").addEventListener("click", () => graph.zoomOut());
byId("all-time").addEventListener("click", () => timeline.all());
document.addEventListener("keydown", press);
showEvent();
