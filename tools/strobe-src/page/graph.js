// The flame graph: d3-flame-graph with our colours and labels, and the keys.

const ROW_HEIGHT = 20;
const NARROWEST_FRAME = 1; // pixels
const MOVING_MS = 250;

const dark = matchMedia("(prefers-color-scheme: dark)");
const still = matchMedia("(prefers-reduced-motion: reduce)");

// Of each kind of frame: the range of hues that names vary in, as page.css has
// them for the modes, and the saturation in light and in dark.
const COLORS = {
  user: { hues: [14, 46], saturation: [84, 52] },
  kernel: { hues: [200, 226], saturation: [72, 48] },
  program: { hues: [130, 160], saturation: [30, 18] },
  idle: { hues: [40, 40], saturation: [6, 4] },
  root: { hues: [40, 40], saturation: [6, 4] },
};
const FOUND = ["#ff7be0", "#b0268f"];
const LIGHTNESS = [71, 33];
const LIGHTNESS_VARIES = 7;

// FNV-1a, to a number from 0 to 1.
function hashName(name) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) {
    hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  }
  return (hash >>> 8 & 0xffff) / 0xffff;
}

function frameColor(node) {
  const scheme = dark.matches ? 1 : 0;
  if (node.highlight) {
    return FOUND[scheme];
  }
  const { hues: [from, to], saturation } = COLORS[node.data.kind];
  const x = hashName(node.data.name);
  return `hsl(${from + (to - from) * x} ${saturation[scheme]}% ` +
    `${LIGHTNESS[scheme] + LIGHTNESS_VARIES * x}%)`;
}

// Makes the graph in `element`. `tell(text)` shows what is said of a frame;
// `zoomed(path)` is called after zooming, with the names on the way to the
// frame, null when nothing is; `followed()` when what zoomTo() asked for is
// there; `searched(term)` after a search, with the regular expression, null:
// there is none; `wrong(why)` when the text is none; `chosen(frame)` after a
// click. `color(node)` and `describe(frame, root, self)` are what a frame looks
// like, and what is said of it.
function makeGraph(element, { tell, zoomed, followed, searched, wrong, chosen,
  color, describe }) {
  const chart = flamegraph.default()
    .cellHeight(ROW_HEIGHT).minFrameSize(NARROWEST_FRAME)
    .resetHeightOnZoom(true)
    .setColorMapper(color)
    .setLabelHandler((node) => label(node))
    .setDetailsHandler((text) => tell(text ?? said()))
    .setSearchMatch((node) => node.data.kind !== "root" &&
      term.test(node.data.name))
    .setSearchHandler(() => searched(term))
    .onClick((node) => moveTo(node, true));
  const selection = d3.select(element);
  let term = null, current = null, zoomedInto = null, drawn = false;
  let clicking = true;
  let picture = null; // the source of the tree, and whether it was cut
  let goal = null, growing = false; // what to zoom into; showMore() is at work
  const desk = makeDesk((is) => element.setAttribute("aria-busy", is));

  const root = () => selection.datum();
  const label = (node) => describe(node.data, root().data, !chart.inverted());
  const said = () => current !== null ? label(current) : "";

  function mark() {
    selection.selectAll("g.frame").classed("current",
      (node) => isFocused() && node === current);
  }

  function isFocused() {
    return element === document.activeElement;
  }

  function moveTo(node, zooming = false) {
    current = node;
    if (zooming) {
      zoomedInto = node.parent !== null ? node.data : null;
      growing = showMore(node.data);
      zoomed(zoomedInto !== null ? pathTo(node) : null);
      if (clicking) {
        chosen(node.data);
      }
    }
    mark();
    tell(said());
  }

  function pathTo(node) {
    return node.parent === null ? [] :
      [...pathTo(node.parent), node.data.name];
  }

  // As a click does, but that nothing is chosen.
  function zoomInto(node) {
    clicking = false;
    chart.zoomTo(node);
    clicking = true;
  }

  // Makes what was left out below a frame. Whether anything may have been.
  function showMore(frame) {
    if (!picture.cut || frame.more || frame.parent === null) {
      return false;
    }
    queueMicrotask(() => desk(
      grow(picture.source, frame, FRAMES_AT_ONCE), () => {
        frame.more = true;
        redrawTree();
        follow();
      }));
    return true;
  }

  // Zooms into the goal as far as there are frames; again when there are more.
  function follow() {
    if (goal === null) {
      return;
    }
    const at = zoomedInto?.depth ?? 0;
    let node = root();
    for (const name of goal) {
      node = node.children?.find((child) => child.data.name === name) ?? node;
    }
    growing = false;
    if (node.parent !== null) {
      zoomInto(node);
    }
    if (!growing || node.depth <= at || node.depth === goal.length) {
      goal = null;
      followed();
    }
  }

  // By names from the root on, in the tree that show() shows next.
  function zoomTo(path) {
    goal = path;
  }

  // A regular expression, whatever the case of letters.
  function search(text) {
    term = null;
    if (drawn) {
      chart.clear();
    }
    searched(null);
    if (text.trim() === "") {
      return;
    }
    try {
      term = new RegExp(text.trim(), "i");
    } catch (error) {
      wrong(error.message);
      return;
    }
    showSearch();
  }

  function showSearch() {
    if (term !== null && drawn) {
      chart.search(term.source);
    }
  }

  function fit() {
    chart.width(Math.max(element.clientWidth, 1))
      .transitionDuration(still.matches ? 0 : MOVING_MS);
  }

  function draw(tree, inverted) {
    fit();
    chart.inverted(inverted);
    element.classList.toggle("inverted", inverted);
    if (drawn) {
      chart.update(tree);
    } else {
      selection.datum(tree).call(chart);
      drawn = true;
    }
    current = null;
    zoomedInto = null;
    zoomed(null);
    tell("");
    showSearch();
    mark();
  }

  // After more of the tree was made: what is zoomed into stays.
  function redrawTree() {
    const nodeOf = (frame) =>
      frame && root().find((node) => node.data === frame);
    const at = current?.data;
    chart.update(root().data);
    showSearch();
    if (zoomedInto !== null) {
      zoomInto(nodeOf(zoomedInto));
    }
    current = nodeOf(at) ?? null;
    mark();
    tell(said());
  }

  // Draws what `work` makes: a source whose frames are grown, and whether any
  // were cut; calls `then` with it.
  function show(work, inverted, then) {
    desk(work, (made) => {
      picture = made;
      draw(made.source.root, inverted);
      then(made);
      follow();
    });
  }

  function redraw() {
    fit();
    chart.update();
    mark();
  }

  function zoomOut() {
    if (zoomedInto !== null) {
      zoomInto(root());
    }
  }

  // Frames hidden by zooming have no width.
  const visible = (nodes) => (nodes ?? []).filter((node) => node.x1 > node.x0);

  function beside(step) {
    const row = visible(current.parent?.children);
    return row[row.indexOf(current) + step];
  }

  function press(event) {
    const upwards = chart.inverted() ? "ArrowDown" : "ArrowUp";
    const downwards = chart.inverted() ? "ArrowUp" : "ArrowDown";
    current ??= root();
    const goal = {
      [upwards]: () => visible(current.children)[0],
      [downwards]: () => current.parent,
      ArrowLeft: () => beside(-1),
      ArrowRight: () => beside(1),
      Home: root,
    }[event.key];
    if (event.key === "Enter" || event.key === " ") {
      chart.zoomTo(current);
    } else if (goal !== undefined) {
      moveTo(goal() ?? current);
    } else {
      return;
    }
    event.preventDefault();
  }

  element.addEventListener("keydown", press);
  element.addEventListener("focus", () => moveTo(current ?? root()));
  element.addEventListener("blur", mark);
  dark.addEventListener("change", redraw);
  new ResizeObserver(() => {
    if (drawn && chart.width() !== element.clientWidth) {
      redraw();
    }
  }).observe(element);
  return { show, search, zoomOut, zoomTo };
}
