#include "user/libread/call_chain.h"

#include "lib/assert.h"
#include "lib/string.h"

#define STACK_HEAD 2u   // words before the stack's contents
#define ENTRY_BYTES 64u // code at a program's entry point

// The state of a chain that is being followed, in the function around `pc`.
struct walk {
    struct row_cache *rows;
    const struct chain_code *code;
    const struct chain_sample *s;
    u32 *out;
    u32 n;
    u32 pc, esp, ebp;
    u32 interrupted_ebp;       // ebp where esp and pc were last known for sure
    u32 stack_at, stack_words; // the known part of the stack
    const u32 *stack;
    bool goes_on; // the stack does, beyond that part
    u32 frame;    // the frame of the sample's pc[next]; 0: not known, or none
    u32 next;
    u32 signals; // signals passed by the chain
};

enum step {
    STEP_CALLER, // a caller was found
    STEP_FRAMES, // the sample's next entry is the caller
    STEP_GUESS,  // the same, if this code has frames
    STEP_SIGNAL, // the function was called by a signal
    STEP_OUTERMOST,
    STEP_LOST,
    STEP_SHORT, // lost: the caller is beyond the copy of the stack
};

static bool word_at(const struct walk *w, u32 at, u32 *out)
{
    u32 offset = at - w->stack_at;
    if (offset & 3 || offset / 4 >= w->stack_words)
        return false;
    *out = w->stack[offset / 4];
    return true;
}

// Why the word at `at` is not known.
static enum step missing(const struct walk *w, u32 at)
{
    bool beyond = at >= w->stack_at + 4 * w->stack_words;
    return beyond && w->goes_on ? STEP_SHORT : STEP_LOST;
}

static void add(struct walk *w, u32 entry)
{
    assert_checked(w->n < CHAIN_MAX);
    w->out[w->n++] = entry;
}

// Adds at most one mark at a place.
static void add_mark(struct walk *w, enum chain_mark mark)
{
    if (w->out[w->n - 1] >= CHAIN_MARKS)
        add(w, mark);
}

// The program that `*pc` is in; `*pc` becomes an address in its file.
static const struct cfi_program *program_of(const struct chain_code *code,
                                            u32 *pc)
{
    bool vdso = *pc - code->vdso_base < code->vdso_bytes;
    *pc -= vdso ? code->vdso_base : code->load_bias;
    return vdso ? code->vdso : code->program;
}

static const struct cfi_row *find_row(struct row_cache *rows,
                                      const struct chain_code *code, u32 pc)
{
    const struct cfi_program *p = program_of(code, &pc);
    return p && rows ? row_cache_find(rows, p, pc) : NULL;
}

// A function that realigns its stack pushes the return address again, above the
// saved ebp: it has a frame that is like any other's.
static bool is_framed(const struct cfi_row *row)
{
    if (row->cfa_loaded)
        return row->ebp_saved && row->ebp_in_frame && row->ebp_offset == 0;
    return row->by_ebp && row->cfa_offset == 8 && row->ebp_saved &&
           !row->ebp_in_frame && row->ebp_offset == -8;
}

enum chain_link chain_link(struct row_cache *rows,
                           const struct chain_code *code, u32 pc)
{
    const struct cfi_row *row = find_row(rows, code, pc);
    return !row ? LINK_UNKNOWN : is_framed(row) ? LINK_FRAMED : LINK_NONE;
}

// There is no row: assumes a frame, if ebp is a known one and nothing describes
// the code. What describes it without a row finds the caller by a register that
// is in no sample: a function does so around the realignment of its stack,
// where ebp is its caller's or lost.
static enum step step_unknown(const struct walk *w)
{
    u32 pc = w->pc;
    const struct cfi_program *p = program_of(w->code, &pc);
    if (w->pc - w->code->entry < ENTRY_BYTES)
        return STEP_OUTERMOST;
    if (p && cfi_find(p->entries, p->count, pc))
        return STEP_LOST;
    return w->frame && w->ebp == w->frame ? STEP_GUESS : STEP_LOST;
}

// Skips the sample's entries whose frames are at or below `at`.
static void pass_frames(struct walk *w, u32 at)
{
    while (w->frame && w->frame <= at && w->next < w->s->depth) {
        w->next++;
        if (!word_at(w, w->frame, &w->frame))
            w->frame = 0;
    }
}

// Steps from the function around pc to its caller.
static enum step step(struct walk *w, bool deep)
{
    const struct cfi_row *row = find_row(w->rows, w->code, w->pc);
    u32 back, ebp = w->ebp;
    if (!row)
        return step_unknown(w);
    // Assembly in the middle of a function (a system call's sixth argument):
    // ebp is no frame pointer here, but the frame is set up.
    if (row->by_ebp && w->ebp == w->interrupted_ebp && w->frame &&
        w->frame != w->ebp)
        return STEP_GUESS;
    u32 cfa = (row->by_ebp ? w->ebp : w->esp) + (u32)row->cfa_offset;
    bool known = !row->cfa_loaded || word_at(w, cfa, &cfa);
    u32 saved_at = (row->ebp_in_frame ? w->ebp : cfa) + (u32)row->ebp_offset;
    // A saved ebp below the stack pointer is no longer valid: clang does not
    // describe that an epilogue has restored ebp.
    bool saved = row->ebp_saved && (s32)(saved_at - w->esp) >= 0;
    // The frame is this function's own: it is set up, or not yet removed.
    bool own = saved && w->frame && w->frame == saved_at &&
               (saved_at == cfa - 8 || is_framed(row));
    known = known && word_at(w, cfa - 4, &back);
    if (own && (!deep || !known))
        return STEP_FRAMES;
    if (!known || cfa - 4 < w->esp)
        return missing(w, cfa);
    if (saved && !word_at(w, saved_at, &ebp))
        return missing(w, saved_at);
    pass_frames(w, cfa - 8);
    w->ebp = ebp;
    w->esp = cfa;
    if (back < CHAIN_MARKS) // none; argc, if the first function has a frame
        return STEP_OUTERMOST;
    if (w->signals < w->s->signal_count &&
        back == w->s->signals[w->signals].back)
        return STEP_SIGNAL;
    add(w, back);
    w->pc = back - 1;
    return STEP_CALLER;
}

// The handler has returned, and the code that it returned to has not yet called
// sigreturn.
static bool is_returning(const struct walk *w)
{
    return w->signals < w->s->signal_count &&
           w->pc - w->s->signals[w->signals].back < SPROFILE_RESTORER_BYTES;
}

// Continues at the code that the handler interrupted.
static void add_interrupted(struct walk *w)
{
    const struct sprofile_signal *g = &w->s->signals[w->signals++];
    add(w, g->eip + 1);
    w->pc = g->eip;
    w->esp = g->esp;
    w->ebp = w->interrupted_ebp = g->ebp;
    if (!w->frame)
        w->frame = g->from;
    if ((g->esp - w->stack_at) / 4 < w->stack_words)
        return; // that is in the known part
    w->goes_on = false;
    w->stack_at = g->esp;
    w->stack = g->stack;
    w->stack_words = MIN(g->stack_words, (u32)SPROFILE_STACK_WORDS);
}

// From a handler to the interrupted code, which may be the return of another
// handler.
static void enter_signal(struct walk *w)
{
    add(w, w->s->signals[w->signals].back + 1); // does not follow a call
    add_interrupted(w);
    while (is_returning(w) && w->n < CHAIN_MAX - 4)
        add_interrupted(w);
}

// Adds the chain by frame pointers, from the sample's next entry on. True: it
// reached a signal handler's frame.
static bool add_frames(struct walk *w)
{
    const struct chain_sample *s = w->s;
    if (w->signals >= s->signal_count) {
        u32 n = MIN(s->depth - w->next, CHAIN_MAX - 2 - w->n);
        memcpy(w->out + w->n, s->pc + w->next, n * sizeof(*s->pc));
        w->n += n;
        w->next += n;
        return false;
    }
    while (w->next < s->depth && w->n < CHAIN_MAX - 4) {
        u32 back = s->pc[w->next++];
        if (back == s->signals[w->signals].back) {
            w->frame = 0;
            return true;
        }
        add(w, back);
    }
    return false;
}

static void add_end(struct walk *w)
{
    u32 flags = w->s->flags;
    if (flags & SPROFILE_F_USER_DEEP || w->n >= CHAIN_MAX - 4)
        add_mark(w, CHAIN_DEEP);
    else if (flags & SPROFILE_F_USER_CUT)
        add_mark(w, CHAIN_UNREADABLE);
    else if (flags & SPROFILE_F_USER_LOST)
        add_mark(w, CHAIN_BROKEN);
}

static void begin(struct walk *w)
{
    const struct chain_sample *s = w->s;
    bool gap = s->flags & SPROFILE_F_USER_GAP;
    w->out[0] = s->pc[0];
    w->n = w->next = 1;
    w->pc = s->pc[0];
    w->esp = w->stack_at = s->stack[0];
    w->ebp = w->interrupted_ebp = s->stack[1];
    w->stack = s->stack + STACK_HEAD;
    w->stack_words = s->stack_words - STACK_HEAD - gap;
    w->goes_on = s->flags & SPROFILE_F_USER_MORE;
    w->frame = gap ? s->stack[s->stack_words - 1] : w->ebp;
}

static u32 follow(struct walk *w, u32 *proven)
{
    bool deep = w->stack_words > SPROFILE_STACK_WORDS;
    bool more = true;
    if (is_returning(w)) {
        // pc may be just after the function's last instruction, in another
        // function.
        w->out[0] = w->s->signals[0].back;
        do
            add_interrupted(w);
        while (is_returning(w));
    }
    while (more) {
        enum step how = STEP_CALLER;
        while (how == STEP_CALLER && w->n < CHAIN_MAX - 4)
            how = step(w, deep);
        if (how == STEP_OUTERMOST) {
            *proven = w->n;
            return w->n;
        }
        bool lost = how == STEP_LOST || how == STEP_SHORT;
        if (lost)
            add_mark(w, how == STEP_SHORT ? CHAIN_SHORT : CHAIN_BROKEN);
        *proven = w->n - (how == STEP_GUESS || lost);
        more = how == STEP_SIGNAL || add_frames(w);
        if (more)
            enter_signal(w);
    }
    add_end(w);
    return w->n;
}

#define UNUSUAL                                                         \
    (SPROFILE_F_USER_CUT | SPROFILE_F_USER_GAP | SPROFILE_F_USER_DEEP | \
     SPROFILE_F_USER_LOST | SPROFILE_F_USER_SIGNALS)

static u32 copy(const struct chain_sample *s, u32 *out, u32 n, u32 *proven)
{
    *proven = n;
    memcpy(out + n, s->pc + 1, (s->depth - 1) * sizeof(*out));
    return n + s->depth - 1;
}

#define SIMPLE_STEPS 4u

// The common case: the frame of the innermost function is set up, or that of
// one that called it through few functions without frames. Returns the number
// of entries before those of the frames; 0: not this case.
static u32 find_simple(struct row_cache *rows, const struct chain_code *code,
                       const struct chain_sample *s, u32 *out)
{
    const u32 *stack = s->stack + STACK_HEAD;
    u32 words = s->stack_words - STACK_HEAD, used = 0, pc = s->pc[0];
    if (words > SPROFILE_STACK_WORDS)
        return 0;
    for (u32 n = 1; n <= SIMPLE_STEPS; n++) {
        const struct cfi_row *row = find_row(rows, code, pc);
        if (!row)
            return 0;
        if (row->by_ebp)
            return is_framed(row) ? n : 0;
        if (row->ebp_saved || row->cfa_offset & 3)
            return 0;
        used += (u32)row->cfa_offset / 4;
        if (used - 1 >= words || !stack[used - 1])
            return 0;
        out[n] = stack[used - 1];
        pc = out[n] - 1;
    }
    return 0;
}

static NOINLINE u32 walk(struct row_cache *rows, const struct chain_code *code,
                         const struct chain_sample *s, u32 *out, u32 *proven)
{
    struct walk w = { .rows = rows, .code = code, .s = s, .out = out };
    if (s->flags & SPROFILE_F_USER_GAP && s->stack_words == STACK_HEAD)
        return 0; // malformed: no kernel writes this
    begin(&w);
    return follow(&w, proven);
}

u32 chain_complete(struct row_cache *rows, const struct chain_code *code,
                   const struct chain_sample *s, u32 *out, u32 *proven)
{
    *proven = 0;
    if (!s->depth)
        return 0;
    out[0] = s->pc[0];
    if (s->stack_words < STACK_HEAD)
        return copy(s, out, 1, proven);
    u32 n = s->flags & UNUSUAL ? 0 : find_simple(rows, code, s, out);
    return n ? copy(s, out, n, proven) : walk(rows, code, s, out, proven);
}
