// The timeline: for each CPU a bar a bin of time, coloured by mode. A range of
// bins can be chosen, by dragging or by keys.

const ROW_MAX = 30; // pixels
const ROWS_TOGETHER = 288;
const LABEL_HEIGHT = 15;
const NS_PER_SECOND = 1e9;

// Many CPUs have low rows, and not each of them a label: the graph below should
// be on the screen, too. A row has `height` and, below it, `gap`.
function layOut(cpus) {
  const row = Math.min(ROW_MAX, Math.floor(ROWS_TOGETHER / cpus));
  const gap = Math.max(1, Math.floor(row / 7));
  return { row, gap, height: row - gap, every: Math.ceil(LABEL_HEIGHT / row) };
}

// Draws one CPU's bars, between whole pixels; a full bar has `most`, or more:
// the period of a late sample is that of earlier bins, too.
function drawCpu(context, bins, most, colors, top, width, full) {
  bins.forEach((modes, b) => {
    const left = Math.round(width * b / bins.length);
    const right = Math.round(width * (b + 1) / bins.length);
    const whole = Math.max(most, modes.reduce((sum, n) => sum + n, 0));
    let bottom = top + full;
    modes.forEach((n, mode) => {
      const height = full * n / whole;
      context.fillStyle = colors[mode];
      context.fillRect(left, bottom - height, right - left, height);
      bottom -= height;
    });
  });
}

// Makes the timeline of `profile` in `element`, which `showTimes` fills;
// `chosen([from, to])` is called when another range of bins is.
function makeTimeline(element, profile, chosen) {
  const last = profile.bins.length;
  const rows = layOut(profile.cpus);
  const labels = document.createElement("div");
  const area = document.createElement("div");
  const canvas = document.createElement("canvas");
  const window_ = document.createElement("div");
  let range = [0, last], from = null, times = [], most = 1;

  const isAll = () => range[0] === 0 && range[1] === last;
  const seconds = (bin) => (profile.seconds * bin / last).toFixed(3);
  const label = () => isAll() ? `0 to ${seconds(last)} s` :
    `${seconds(range[0])} to ${seconds(range[1])} s`;

  function draw() {
    const style = getComputedStyle(document.documentElement);
    const colors = MODES.map((mode) => style.getPropertyValue(`--${mode}`));
    const width = area.clientWidth;
    const height = profile.cpus * rows.row - rows.gap;
    const scale = devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.scale(1, scale);
    times.forEach((bins, cpu) => drawCpu(context, bins, most, colors,
      cpu * rows.row, canvas.width, rows.height));
  }

  function show() {
    window_.hidden = isAll();
    window_.style.left = `${100 * range[0] / last}%`;
    window_.style.width = `${100 * (range[1] - range[0]) / last}%`;
    area.setAttribute("aria-valuetext", label());
    area.setAttribute("aria-valuenow", range[0]);
  }

  function choose(a, b) {
    const next = [Math.max(0, Math.min(a, b)), Math.min(last, Math.max(a, b))];
    if (next[0] === next[1] ||
        next[0] === range[0] && next[1] === range[1]) {
      return;
    }
    range = next;
    show();
    chosen(range);
  }

  function binAt(event) {
    const box = area.getBoundingClientRect();
    const bin = Math.floor(last * (event.clientX - box.left) / box.width);
    return Math.max(0, Math.min(last - 1, bin));
  }

  function drag(event) {
    if (from !== null) {
      const to = binAt(event);
      choose(Math.min(from, to), Math.max(from, to) + 1);
    }
  }

  // The first key takes a tenth of the time; then it is moved, or its end is.
  function press(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") {
      choose(0, last);
    } else if (step === undefined) {
      return;
    } else if (isAll()) {
      choose(0, Math.ceil(last / 10));
    } else if (event.shiftKey) {
      choose(range[0], Math.max(range[0] + 1, range[1] + step));
    } else if (range[0] + step >= 0 && range[1] + step <= last) {
      choose(range[0] + step, range[1] + step);
    }
    event.preventDefault();
    event.stopPropagation();
  }

  labels.className = "labels";
  for (let cpu = 0; cpu < profile.cpus; cpu += rows.every) {
    const line = document.createElement("span");
    line.textContent = `CPU ${cpu}`;
    labels.append(line);
  }
  labels.style.setProperty("--step", `${rows.row * rows.every}px`);
  labels.style.setProperty("--height", `${rows.height}px`);
  area.className = "area";
  area.tabIndex = 0;
  area.setAttribute("role", "slider");
  area.setAttribute("aria-label", "Time chosen: arrows move it, with Shift " +
    "its end; Escape chooses all");
  area.setAttribute("aria-valuemin", 0);
  area.setAttribute("aria-valuemax", last);
  window_.className = "window";
  area.append(canvas, window_);
  element.append(labels, area);
  area.addEventListener("pointerdown", (event) => {
    from = binAt(event);
    area.setPointerCapture(event.pointerId);
  });
  area.addEventListener("pointermove", drag);
  area.addEventListener("pointerup", (event) => {
    drag(event);
    from = null;
  });
  area.addEventListener("pointercancel", () => (from = null));
  area.addEventListener("keydown", press);
  dark.addEventListener("change", draw);
  new ResizeObserver(draw).observe(area);
  show();

  // The periods of an event, by CPU, bin and mode. A full bar is the time of a
  // bin; of events, the most that any bin of any CPU has.
  function showTimes(ofEvent, unit) {
    times = ofEvent;
    most = unit === "ns" ? profile.seconds * NS_PER_SECOND / last :
      Math.max(1, ...times.flat().map((modes) =>
        modes.reduce((sum, n) => sum + n, 0)));
    draw();
  }

  return { label, isAll, showTimes, choose, all: () => choose(0, last) };
}
