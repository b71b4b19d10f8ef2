// The page of a comparison: a flame graph of before and after together,
// coloured by what changed, and the table of functions. tools/strobe-src/html_diff.h
// says what the data is.

const TABLE_ROWS = 30;
const CHANCE_SHOWN = 0.0001;
const SIGNIFICANT = 0.05;
// Chance below this has that mark, as in the table of `diff`.
const MARKS = [[0.001, "***"], [0.01, "**"], [0.05, "*"]];
// By how much a frame changed, of the greater of its two sides: below the first
// of these shares it has the palest colour, below the last the strongest.
const STEPS = [0.1, 0.5, Infinity];
// Blue and orange differ for all kinds of colour vision; the palest first. In
// light, and in dark.
const CHANGE_COLORS = {
  less: [["#cfe3f3", "#8dc1e6", "#4a9ad9"], ["#2b4256", "#27557d", "#1f6fb0"]],
  more: [["#fbe0bf", "#f5b36b", "#e8801f"], ["#54402a", "#7d4a1c", "#b0560a"]],
  none: [["#dbd8d3"], ["#45454c"]],
};
const FOUND_COLORS = ["#fff04d", "#8f8600"];

const data = JSON.parse(byId("data").textContent);
let inverted = false, zoom = null, term = null, remembering = false;

// --- a change ---------------------------------------------------------------

const several = data.sides.every(({ runs }) => runs.length > 1);

// Whether the change may be chance: then it has no colour. That it cannot be
// decided (null) says nothing against it.
function mayBeChance(chance) {
  return chance !== null && chance >= SIGNIFICANT;
}

function classOf({ before, after, chance }) {
  const change = after - before;
  if (change === 0 || mayBeChance(chance)) {
    return ["none", 0];
  }
  const share = Math.abs(change) / Math.max(before, after);
  return [change < 0 ? "less" : "more",
    STEPS.findIndex((limit) => share < limit)];
}

function changeColor(node) {
  const scheme = dark.matches ? 1 : 0;
  if (node.highlight) {
    return FOUND_COLORS[scheme];
  }
  const [kind, step] = classOf(node.data);
  return CHANGE_COLORS[kind][scheme][step];
}

function amount(value) {
  return value.toLocaleString("en", { maximumFractionDigits: 2 });
}

function signed(value) {
  return `${value > 0 ? "+" : ""}${amount(value)}`;
}

function relative(before, after) {
  return before === 0 ? "new" : after === 0 ? "gone" :
    `${after > before ? "+" : ""}` +
    `${(100 * (after - before) / before).toFixed(1)}\u00a0%`;
}

function chanceText(chance) {
  if (chance === null) {
    return "unknown";
  }
  const mark = MARKS.find(([below]) => chance < below)?.[1] ?? "";
  return `${chance < CHANCE_SHOWN ? `<${CHANCE_SHOWN}` : chance.toFixed(4)}` +
    `${mark ? ` ${mark}` : ""}`;
}

function describeChange({ name, image, before, after, chance }) {
  const { unit } = data;
  return `${name}${image ? ` (${image})` : ""}: ` +
    `before ${amount(before)} ${unit}, after ${amount(after)} ${unit}, ` +
    `change ${signed(after - before)} ${unit} (${relative(before, after)}), ` +
    `chance ${chanceText(chance)}`;
}

// --- what is shown ----------------------------------------------------------

const WIDTHS = {
  both: (before, after) => before + after,
  before: (before) => before,
  after: (_before, after) => after,
};

const graph = makeGraph(byId("graph"), {
  color: changeColor,
  describe: describeChange,
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
    showFound();
  },
  wrong: (why) => (byId("found").textContent = why),
  chosen: () => {},
});

function chosenTree() {
  return inverted ? data.inverted : data.calls;
}

function* makePicture() {
  const { parent, symbol, before, after, chance } = chosenTree();
  const width = WIDTHS[byId("widths").value];
  const value = before.map((side, node) => width(side, after[node]));
  const source = yield* makeForestSource({ parent, value }, (node, above) =>
    Object.assign(node === 0 ? newFrame("all", "root", "", null) :
      newFrame(data.symbols.name[symbol[node]], "change",
        data.symbols.path[symbol[node]], above),
    { before: before[node], after: after[node], chance: chance[node] }));
  const cut = yield* grow(source, source.root, FRAMES_AT_ONCE);
  return { source, cut };
}

function show() {
  graph.show(makePicture(), inverted, ({ source: { root }, cut }) => {
    byId("shown").textContent = `${amount(root.before)} ${data.unit} before, ` +
      `${amount(root.after)} ${data.unit} after: ` +
      `${relative(root.before, root.after)}, chance ${chanceText(root.chance)}`;
    byId("cut").hidden = !cut;
    remember();
  });
}

// What the functions that the search finds take with what they call, each
// path once: the outermost of them has it.
function showFound() {
  const { parent, symbol, before, after } = data.calls;
  let sides = [0, 0];
  byId("found").textContent = "";
  if (term === null) {
    return;
  }
  const named = data.symbols.name.map((name) => term.test(name));
  const found = new Uint8Array(parent.length);
  for (let node = 1; node < parent.length; node++) {
    found[node] = found[parent[node]];
    if (!found[node] && named[symbol[node]]) {
      found[node] = 1;
      sides = [sides[0] + before[node], sides[1] + after[node]];
    }
  }
  byId("found").textContent = `found in ${amount(sides[0])} ${data.unit} ` +
    `before, ${amount(sides[1])} ${data.unit} after`;
}

// --- head, legend, table ----------------------------------------------------

function showHead() {
  const [before, after] = data.sides;
  const title = before.command === after.command && before.command ||
    "Before and after";
  document.title = `${title}: Strobe comparison`;
  byId("title").textContent = title;
  const side = (name, { command, runs }) =>
    [[name, command], ...runs.map((run) => ["", run])];
  byId("facts").replaceChildren(
    ...[...side("Before", before), ...side("After", after)].map(
      ([name, text]) => make("div", [make("dt", [name]), make("dd", [text])])));
}

function showLegend() {
  const swatch = (kind, step, text) => {
    const mark = make("i", []);
    mark.style.background = CHANGE_COLORS[kind][dark.matches ? 1 : 0][step];
    return make("li", [mark, text]);
  };
  const limits = ["under 10 %", "under half", "more than half, or all of it"];
  byId("legend").replaceChildren(
    ...[2, 1, 0].map((step) => swatch("less", step, `less: ${limits[step]}`)),
    swatch("none", 0, several ? "no change, or one that may be chance" :
      "no change"),
    ...[0, 1, 2].map((step) => swatch("more", step, `more: ${limits[step]}`)));
  const chance = several ?
    "A change that chance makes in 5 % of cases or more (Welch's t test) is " +
    "grey; of many frames one in twenty has a colour without reason." :
    "One run on a side: the significance of a change is unknown; with " +
    "several (A1 A2 ... vs B1 B2 ...) insignificant ones are grey.";
  byId("legend-note").textContent = `${chance} Widths are ` +
    { both: "before and after together, so that what is gone and what is new " +
        "are both there", before: "before: what is new has none",
      after: "after: what is gone has none" }[byId("widths").value] +
    `. Idle is left out, and what is below ${100 * data.left_out} % of both.`;
}

function showTable() {
  const [, ...rows] = data.table.rows;
  byId("unit").textContent = `in ${data.unit}`;
  byId("changes").tBodies[0].replaceChildren(
    ...rows.slice(0, TABLE_ROWS).map((row) => {
      const button = make("button", [row.name], "link");
      button.type = "button";
      button.addEventListener("click", () =>
        searchFor(`^${literally(row.name.replace(/ \[[^\]]*\]$/, ""))}$`));
      return make("tr", [make("td", [amount(row.before)]),
        make("td", [amount(row.after)]),
        make("td", [`${signed(row.after - row.before)} (` +
          `${relative(row.before, row.after)})`]),
        make("td", [chanceText(row.p)]), make("td", [button])]);
    }));
  byId("rows").hidden = rows.length <= TABLE_ROWS;
  byId("rows").textContent = `${count(rows.length - TABLE_ROWS)} more have ` +
    "smaller changes: strobe diff --rows 0 shows all";
}

// --- controls, and the page's address ---------------------------------------

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

// What is as at first is not in it.
function remember() {
  if (!remembering) {
    return;
  }
  const words = new URLSearchParams();
  const add = (key, value, first) => value !== first && words.set(key, value);
  add("search", byId("search").value.trim(), "");
  add("widths", byId("widths").value, "both");
  add("inverted", String(inverted), "false");
  add("zoom", JSON.stringify(zoom), "null");
  const text = String(words);
  history.replaceState(null, "", text ? `#${text}` : location.pathname);
}

function restore() {
  const words = new URLSearchParams(location.hash.slice(1));
  const widths = words.get("widths");
  remembering = false;
  byId("widths").value = Object.hasOwn(WIDTHS, widths) ? widths : "both";
  inverted = words.get("inverted") === "true";
  byId("invert").setAttribute("aria-pressed", inverted);
  showLegend();
  searchFor(words.get("search") ?? "");
  graph.zoomTo(readPath(words.get("zoom") ?? "null"));
  show();
}

showHead();
showTable();
watchSearch(searchFor);
byId("controls").addEventListener("submit", (event) => event.preventDefault());
byId("invert").addEventListener("click", toggleInverted);
byId("reset").addEventListener("click", () => graph.zoomOut());
byId("widths").addEventListener("change", () => {
  showLegend();
  show();
});
watchKeys(graph, searchFor, toggleInverted);
dark.addEventListener("change", showLegend);
addEventListener("hashchange", restore);
restore();
