// Long work in pieces, between which the page answers keys and the mouse. The
// work is a generator that counts its steps by due(), and yields when that says
// so: no piece has more than PIECE steps. A step is the visit of one node,
// count or frame.

const PIECE = 1 << 14;
let steps = 0;

// Counts a step. Whether it was the last of its piece.
function due() {
  return (++steps & PIECE - 1) === 0;
}

// A desk does one work at a time: begin(work, then) ends what it was at, does
// the first piece at once, and calls `then` with what the work returns.
// `busy(whether)` is called when the work needs more than one piece, and when
// it is over.
function makeDesk(busy) {
  const channel = new MessageChannel(); // faster than timers, and as fair
  let work = null, then = null, posted = false;

  function post() {
    if (!posted) {
      posted = true;
      channel.port2.postMessage(null);
    }
  }

  function goOn() {
    const { done, value } = work.next();
    if (!done) {
      post();
      return;
    }
    work = null;
    busy(false);
    then(value);
  }

  channel.port1.onmessage = () => {
    posted = false;
    if (work !== null) {
      goOn();
    }
  };

  return function begin(next, called) {
    work?.return();
    work = next;
    then = called;
    steps = 0;
    busy(true);
    goOn();
  };
}
