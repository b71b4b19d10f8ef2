// What the pages of a profile and of a comparison have in common.

const TYPING_MS = 120;

const byId = (id) => document.getElementById(id);

function make(tag, parts, ...classes) {
  const element = document.createElement(tag);
  element.append(...parts);
  element.classList.add(...classes);
  return element;
}

function count(n) {
  return n.toLocaleString("en");
}

function percent(part, whole) {
  return `${(whole > 0 ? 100 * part / whole : 0).toFixed(1)} %`;
}

function samples(n) {
  return `${count(n)} sample${n === 1 ? "" : "s"}`;
}

// The regular expression that is this text.
function literally(text) {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

// Calls `search` with what is typed, once typing pauses.
function watchSearch(search) {
  let waiting = 0;
  byId("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => search(byId("search").value), TYPING_MS);
  });
}

// The names on the way to a frame, as the address has them.
function readPath(text) {
  try {
    const path = JSON.parse(text);
    return Array.isArray(path) ? path : [];
  } catch {
    return [];
  }
}

// Keys that work wherever nothing is typed.
function watchKeys(graph, searchFor, toggleInverted) {
  document.addEventListener("keydown", (event) => {
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
  });
}
