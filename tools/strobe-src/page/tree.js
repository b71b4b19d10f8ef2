// The tree of frames that the graph draws, made as far as it can be seen: the
// widest frames first, so many as the browser draws at once. What was left out
// below a frame is made when it is zoomed into.
//
// A source has a `root` frame and `*children(frame)`, which makes the frames
// next to one. A frame is never wider than its parent, so that the widest of
// those not made yet has its parent made.

const FRAMES_AT_ONCE = 4000;

function newFrame(name, kind, image, parent) {
  return {
    name, kind, image, parent,
    depth: parent === null ? 0 : parent.depth + 1,
    self: 0, value: 0, samples: 0,
    symbol: -1,   // of a function: its number
    children: [], // those that are made, the widest first,
    rest: null,   // and those that are not; null: nobody has asked for them
  };
}

// The order in which frames are made, and stand beside each other.
function before(a, b) {
  return b.value - a.value || a.depth - b.depth || (a.name < b.name ? -1 : 1);
}

// A binary heap: pop() takes what is before all others.
function makeHeap() {
  const list = [];

  function push(frame) {
    let i = list.length;
    for (let up; i > 0 && before(frame, list[up = i - 1 >> 1]) < 0; i = up) {
      list[i] = list[up];
    }
    list[i] = frame;
  }

  function pop() {
    const first = list[0], last = list.pop();
    let i = 0;
    for (let child = 1; child < list.length; child = 2 * i + 1) {
      if (child + 1 < list.length && before(list[child + 1], list[child]) < 0) {
        child++;
      }
      if (before(last, list[child]) <= 0) {
        break;
      }
      list[i] = list[child];
      i = child;
    }
    if (list.length > 0) {
      list[i] = last;
    }
    return first;
  }

  return { list, push, pop };
}

// Puts the children of `frame` that are not made yet into the heap.
function* open(source, frame, heap) {
  frame.rest ??= yield* source.children(frame);
  while (frame.rest.length > 0) {
    heap.push(frame.rest.pop());
    if (due()) {
      yield;
    }
  }
}

function putBack(frame) {
  frame.parent.rest.push(frame);
}

// Makes frames below `from`, at most `limit`. Whether any were left out. Ended
// early, it can be begun again.
function* grow(source, from, limit) {
  const heap = makeHeap();
  let making = null;
  try {
    const made = [from];
    for (const frame of made) {
      yield* open(source, frame, heap);
      frame.children.forEach((child) => made.push(child));
    }
    for (let n = 0; n < limit && heap.list.length > 0; n++) {
      making = heap.pop();
      yield* open(source, making, heap);
      making.parent.children.push(making);
      making = null;
    }
    const any = heap.list.length > 0;
    while (heap.list.length > 0) {
      putBack(heap.list.pop());
      if (due()) {
        yield;
      }
    }
    return any;
  } finally {
    heap.list.forEach(putBack);
    if (making !== null) {
      putBack(making);
    }
  }
}

// --- sources ----------------------------------------------------------------

// A forest lists the nodes of a tree: `parent` and `value` of each; a node
// comes behind its parent, and 0 is the root. `frame(node, parent)` makes a
// frame.
function* makeForestSource({ parent, value }, frame) {
  const first = new Uint32Array(parent.length);
  const next = new Uint32Array(parent.length);
  for (let node = 1; node < parent.length; node++) {
    next[node] = first[parent[node]];
    first[parent[node]] = node;
    if (due()) {
      yield;
    }
  }

  function make(node, above) {
    return Object.assign(frame(node, above), { node, value: value[node] });
  }

  return {
    root: make(0, null),
    * children(above) {
      const list = [];
      for (let node = first[above.node]; node !== 0; node = next[node]) {
        if (value[node] > 0) {
          list.push(make(node, above));
        }
        if (due()) {
          yield;
        }
      }
      return list;
    },
  };
}
