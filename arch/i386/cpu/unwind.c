// Unwinder: call chains of the kernel and of user programs, by frame pointers.
//
// Frame pointers yield the callers of a function once its frame is set up. In
// its prologue and epilogue the return address is still, or again, at the top
// of the stack; for kernel code the frame table (kernel/base/kframes.c), which
// the build makes from the compiler's call frame information, gives its offset.
// In the entry code, where a trap frame is incomplete, the stack is searched
// for the part that the CPU pushed.
//
// While calls are traced (arch/call_trace.h), return addresses may be
// trace_exit, and the stubs may be running.
//
// Nothing on a stack is trusted: each address is checked against the page
// tables before it is read, and frames must be at ascending addresses.

#include "arch/unwind.h"
#include "arch/call_trace.h"
#include "arch/cpu.h"
#include "arch/i386/cpu/unwind_signals.h"
#include "arch/i386/mm/entry.h"
#include "arch/i386/mm/peek.h"
#include "arch/mmu.h"
#include "arch/text.h"
#include "arch/thread.h"
#include "arch/vdso.h"
#include "kernel/base/log.h"
#include "kernel/base/thread.h"
#include "kernel/debug/kasan.h"
#include "kernel/debug/kcsan.h"
#include "lib/string.h"
#include <strobe/kbox.h>

extern char text_end[]; // linker.ld
extern const char helpers_start[], helpers_end[];
extern const char trap_stubs[], trap_code_end[]; // entry.S

// Entry code: words searched from esp upwards for the part that the CPU pushed.
#define ENTRY_WORDS 20u
// A saved frame pointer is accepted up to this distance from where it was
// saved.
#define SAVED_REACH KIB(64)
#define EFLAGS_ALWAYS 0x2u
#define EFLAGS_NEVER 0xffc08028u

struct walk {
    u32 low, high; // the walked stack: only addresses within it are read
    u32 page;      // the last page that was found mapped
    u32 eip, esp, ebp, edi;
};

static bool is_text(u32 pc)
{
    return pc - (u32)text_start < (u32)(text_end - text_start);
}

static bool is_entry(u32 pc)
{
    return pc - (u32)trap_stubs < (u32)(trap_code_end - trap_stubs);
}

// Entry code, or the stubs of call tracing, which follow it.
static bool is_special(u32 pc)
{
    return pc - (u32)trap_stubs < (u32)(trace_code_end - trap_stubs);
}

// Whether `at` is mapped. A stack other than the thread's own (a CPU's first
// stack, or another thread's during the switch) ends at an unmapped page, or
// where frames are not plausible.
static bool mapped(struct walk *w, u32 at)
{
    u32 page = at & PAGE_MASK;
    if (page == w->page)
        return true;
    if (at >= VMAP_BASE) {
        const void *entry = leaf_entry(&kernel_pagetable, at);
        if (!entry || !(READ_ONCE(*(const u32 *)entry) & ENTRY_PRESENT))
            return false;
    }
    w->page = page;
    return true;
}

// The stack is of the thread that was interrupted on this CPU, perhaps between
// two writes to it: values are checked before they are used as addresses.
static NO_KASAN NO_KCSAN bool read(struct walk *w, u32 at, u32 *value)
{
    if (at & 3 || at < w->low || at >= w->high || !mapped(w, at))
        return false;
    *value = *(const u32 *)at;
    return true;
}

// Moves the walk to the context that a trap frame interrupted; the part pushed
// by the CPU is at `at`. False: that context is user mode.
static bool cross(struct walk *w, u32 at)
{
    u32 cs;
    if (!read(w, at + 4, &cs) || (cs & 0xffff) != KERNEL_CS ||
        !read(w, at, &w->eip))
        return false;
    w->esp = at + 12;
    return is_text(w->eip);
}

// The same from within the entry code, where the trap frame is incomplete.
static bool cross_partial(struct walk *w)
{
    w->edi = 0; // unknown
    for (u32 at = w->esp; at < w->esp + 4 * ENTRY_WORDS; at += 4) {
        u32 eip, cs, flags;
        if (!read(w, at, &eip) || !read(w, at + 4, &cs) ||
            !read(w, at + 8, &flags))
            return false;
        bool frame = (flags & (EFLAGS_ALWAYS | EFLAGS_NEVER)) == EFLAGS_ALWAYS;
        if ((cs & 0xffff) == USER_CS && frame && eip < USER_END)
            return false;
        if ((cs & 0xffff) == KERNEL_CS && frame && is_text(eip))
            return cross(w, at);
    }
    return false;
}

// Address of the return address of the function in which eip is; sets ebp to
// its caller's. 0: unknown.
static u32 first_return(struct walk *w)
{
    if (call_trace_is_exit(w->eip))
        return w->esp - 4; // it has been taken from there
    u32 kind = kframe_kind(w->eip), at;
    if (kind == KFRAME_UNKNOWN)
        return 0;
    if (kind == KFRAME_STANDS) {
        at = w->ebp + 4;
        return read(w, w->ebp, &w->ebp) ? at : 0;
    }
    if (kind == KFRAME_BELOW_EDI)
        return w->edi - 4;
    at = w->esp + 4 * (kind >> 1);
    if (kind & 1 && !read(w, at - 4, &w->ebp))
        return 0;
    return at;
}

struct chain {
    u32 *pcs;
    u32 n, max;
    bool *cut;
};

// False: there is no room.
static bool add(struct chain *c, u32 pc)
{
    if (c->n == c->max) {
        *c->cut = true;
        return false;
    }
    c->pcs[c->n++] = linked_address(pc);
    return true;
}

// eip is in a stub of call tracing: adds the function that it serves, and finds
// the function's return address.
static bool leave_stub(struct walk *w, struct chain *c, u32 *slot, u32 *pc)
{
    u32 at = first_return(w);
    *slot = at;
    if (w->eip - (u32)trace_exit < (u32)(trace_code_end - trace_exit)) {
        *pc = call_trace_back(at);
        return *pc || read(w, at, pc);
    }
    // A patched entry has called the stub.
    *slot = at + 4;
    return at && read(w, at, pc) && is_text(*pc) && add(c, *pc) &&
           read(w, *slot, pc);
}

// Functions that are left by a jump to another one (tail calls) are not on the
// stack: adds those whose return address is at `slot`, which is an exit stub,
// but for the function in which the chain is already.
static bool add_jumped(struct chain *c, u32 slot)
{
    u32 last = moved_address(c->pcs[c->n - 1]), function;
    u32 here = ksym_start(last - (c->n > 1));
    for (u32 i = 0; (function = call_trace_function(slot, i)); i++) {
        if (function != here && !add(c, function + TEXT_SITE))
            return false;
    }
    return true;
}

// The return address `*pc` at `*slot` is an exit stub: finds the real one. Or
// it is in a stub, which has called a function of kernel/trace.
static NOINLINE bool see_through(struct walk *w, struct chain *c, u32 *slot,
                                 u32 *pc)
{
    if (call_trace_is_exit(*pc)) {
        *pc = call_trace_back(*slot);
        return *pc && add_jumped(c, *slot);
    }
    w->eip = *pc;
    w->esp = *slot + 4;
    return add(c, *pc) && leave_stub(w, c, slot, pc);
}

// Walks from the return address `pc`, which is at `slot`, outwards to the next
// trap frame. True: the walk is at the context which that frame interrupted.
static bool walk_frames(struct walk *w, struct chain *c, u32 slot, u32 pc)
{
    while (is_text(pc)) {
        w->low = slot; // callers' frames lie above
        if (is_special(pc)) {
            const struct trapframe *tf = (const struct trapframe *)(slot + 4);
            if (is_entry(pc))
                return read(w, (u32)&tf->ebp, &w->ebp) &&
                       read(w, (u32)&tf->edi, &w->edi) &&
                       cross(w, (u32)&tf->eip);
            if (!see_through(w, c, &slot, &pc))
                return false;
            continue;
        }
        if (!add(c, pc))
            return false;
        slot = w->ebp + 4;
        if (!w->ebp || !read(w, w->ebp, &w->ebp) || !read(w, slot, &pc))
            return false;
    }
    return false;
}

// Walks from eip outwards, likewise.
static bool walk_from(struct walk *w, struct chain *c)
{
    u32 slot, pc;
    if (is_entry(w->eip))
        return cross_partial(w);
    if (is_special(w->eip))
        return leave_stub(w, c, &slot, &pc) && walk_frames(w, c, slot, pc);
    slot = first_return(w);
    return slot && read(w, slot, &pc) && walk_frames(w, c, slot, pc);
}

u32 unwind_kernel(const struct trapframe *tf, u32 esp, u32 *pcs, u32 max,
                  bool *cut)
{
    struct walk w = {
        .eip = tf->eip, .esp = esp, .ebp = tf->ebp, .edi = tf->edi
    };
    w.low = w.page = (u32)tf;
    w.page &= PAGE_MASK;
    u32 stack = (u32)current_base()->kstack;
    w.high = (u32)tf - stack < KSTACK_SIZE ? stack + KSTACK_SIZE
                                           : (u32)tf + KSTACK_SIZE;
    struct chain c = { .pcs = pcs, .max = max, .cut = cut };
    *cut = false;
    while (add(&c, w.eip + (c.n > 0)) && walk_from(&w, &c))
        ;
    return c.n;
}

// What a function keeps at its frame pointer.
struct kernel_frame {
    const struct kernel_frame *caller;
    u32 back;
};

void unwind_caller(struct trapframe *tf, const void *frame)
{
    const struct kernel_frame *f = frame;
    u32 back;
    for (;; f = f->caller) {
        back = f->back;
        if (call_trace_is_exit(back))
            back = call_trace_back((u32)&f->back);
        if (back - (u32)helpers_start >= (u32)(helpers_end - helpers_start))
            break;
    }
    *tf = (struct trapframe){
        .eip = back,
        .cs = KERNEL_CS,
        .eflags = EFLAGS_IF,
        .ebp = (u32)f->caller,
        .esp = (u32)(f + 1),
    };
}

// The program is in the vDSO's system call, which only returns.
static void leave_vdso(struct trapframe *tf)
{
    u32 call = vdso_address(this_cpu_read(aspace)->vdso, VDSO_SYSTEM_CALL);
    if (tf->eip != call + TRAP_CALL_BYTES)
        return;
    struct user_peek p;
    user_peek_begin(&p, tf->esp, true);
    const u32 *back = user_peek(&p, tf->esp, sizeof(*back));
    if (back) {
        tf->eip = READ_ONCE(*back);
        tf->esp += sizeof(*back);
    }
    user_peek_end(&p);
}

// The functions that the entry code calls are not traced, so it is found by
// their return addresses.
void unwind_interrupted(struct trapframe *tf, const void *frame)
{
    const struct kernel_frame *f = frame;
    while (!is_entry(f->back))
        f = f->caller;
    const struct trapframe *interrupted = (const void *)(f + 1);
    if (trap_from_user(interrupted)) {
        *tf = *interrupted;
        leave_vdso(tf);
        return;
    }
    memcpy(tf, interrupted, offsetof(struct trapframe, esp));
    tf->esp = trap_kernel_stack(interrupted);
}

// User registers at the entry to the kernel.
struct user_context {
    u32 eip, esp, ebp;
};

// The current thread's user registers, while the kernel is interrupted, perhaps
// in the middle of changing them. False: the thread has no user mode.
static NO_KCSAN NOINLINE bool get_user_registers(const struct trapframe *tf,
                                                 struct user_context *out)
{
    const struct thread_base *t = current_base();
    // During a thread switch the stack is another thread's.
    if (!t->is_user || (u32)tf - (u32)t->kstack >= KSTACK_SIZE)
        return false;
    const struct trapframe *user = thread_trapframe(current);
    if ((READ_ONCE(user->cs) & 0xffff) != USER_CS) // see arch_end_user
        return false;
    *out = (struct user_context){ user->eip, user->esp, user->ebp };
    // In the entry and exit code the frame is incomplete, but ebp is still, or
    // again, the user's.
    if (is_entry(tf->eip) && (u32)&tf->esp + 4 * ENTRY_WORDS > (u32)(user + 1))
        out->ebp = tf->ebp;
    return true;
}

// The two words at a frame pointer.
struct frame {
    u32 caller, back; // the caller's frame, the return address
};

// Reads the two words separately: if the stack is only word-aligned they may
// lie in different pages.
static NOINLINE bool read_split_frame(struct user_peek *p, u32 at,
                                      struct frame *out)
{
    const u32 *f = user_peek(p, at, 4);
    if (!f)
        return false;
    out->caller = READ_ONCE(*f);
    f = user_peek(p, at + 4, 4);
    if (!f)
        return false;
    out->back = READ_ONCE(*f);
    return true;
}

static ALWAYS_INLINE bool read_frame(struct user_peek *p, u32 at,
                                     struct frame *out)
{
    const u32 *f = user_peek(p, at, sizeof(*out));
    if (unlikely(!f))
        return read_split_frame(p, at, out);
    *out = (struct frame){ READ_ONCE(f[0]), READ_ONCE(f[1]) };
    return true;
}

static ALWAYS_INLINE bool is_frame(struct user_peek *p, u32 at, u32 above)
{
    struct frame f;
    return likely(at >= above && !(at & 3)) && likely(read_frame(p, at, &f)) &&
           likely(f.back - PAGE_SIZE < USER_END - PAGE_SIZE) &&
           likely(f.caller - 1 >= at); // none, or above
}

// A function that uses ebp for another purpose (a system call's sixth argument)
// has saved its caller's ebp near the top of the stack: finds that.
static NOINLINE u32 find_saved(struct user_peek *p, u32 esp, const u32 *top,
                               u32 words)
{
    for (u32 i = 0; i < words; i++) {
        if (top[i] - esp < SAVED_REACH &&
            is_frame(p, top[i], esp + 4 * (i + 1)))
            return top[i];
    }
    return 0;
}

static NOINLINE u32 stack_top_by_words(struct user_peek *p, u32 esp, u32 *out)
{
    const u32 *at;
    u32 n = 0;
    while (n < SPROFILE_STACK_WORDS && !(esp & 3) &&
           (at = user_peek(p, esp + 4 * n, 4)))
        out[n++] = READ_ONCE(*at);
    return n;
}

// Copies the words from esp on; returns how many could be read.
static ALWAYS_INLINE u32 stack_top(struct user_peek *p, u32 esp, u32 *out)
{
    const u32 *at =
        esp & 3 ? NULL : user_peek(p, esp, 4 * SPROFILE_STACK_WORDS);
    if (unlikely(!at))
        return stack_top_by_words(p, esp, out);
#pragma GCC unroll 16
    for (u32 n = 0; n < SPROFILE_STACK_WORDS; n++)
        out[n] = READ_ONCE(at[n]);
    return SPROFILE_STACK_WORDS;
}

// A "place" numbers the addresses so that one unsigned comparison validates a
// caller's frame: it must be aligned, above the current frame and in the same
// page. The place of `va` is (va - base) rotated right by 2, which gives the
// last address in the page where a frame (two words) fits the place -1, the
// word below it -2, and so on. As u32s these are the greatest places: aligned
// addresses above and below the page have lesser ones, unaligned addresses the
// least. So `next > at` holds only for a frame above `at` in the same page.
#define PLACE_FIRST (u32) - (PAGE_SIZE / 4 - 1)

static ALWAYS_INLINE u32 place_base(u32 page)
{
    return page + PAGE_SIZE - 7; // the last frame has the place -1
}

static ALWAYS_INLINE u32 place(u32 va, u32 base)
{
    u32 n = va - base;
    return n >> 2 | n << 30;
}

static ALWAYS_INLINE u32 place_address(u32 place, u32 base)
{
    return (place << 2 | place >> 30) + base;
}

// An address at which no frame can lie: the caller of an implausible frame.
#define NO_FRAME 1u

// The caller of the frame at `at` when it is not above it in the same page: an
// address above the frame; 0, it is the outermost frame; or NO_FRAME. Reads the
// word again: to keep the first value, the loop below would need one register
// more than there is.
static NO_KASAN NO_KCSAN NOINLINE u32 caller_above(const u32 *last, u32 at,
                                                   u32 base)
{
    u32 caller = READ_ONCE(last[(s32)at]);
    return caller > place_address(at, base) || !caller ? caller : NO_FRAME;
}

#define BATCH 16u // frames for each check of the space left

// Follows the chain of frames from *frame upwards, while they lie in the page
// that `p` shows and there is space for BATCH more. Writes their return
// addresses from `out` on, not beyond `end`, and returns the end of what was
// written. *frame becomes the next frame's address, 0 if there is none.
//
// Scheduled by hand: places need one comparison a frame, the unrolled loop
// checks the space once for BATCH frames, and OPAQUE keeps each loaded word in
// a register. A whole sample with 17 frames takes 697 instructions, 913 with
// this walk in plain C (issue 17; `make bench`, sample-stack). This is worth it
// since the loop runs for each frame of each sample, and the goal for such a
// sample is 700.
static NO_KASAN NO_KCSAN u32 *walk_page(const struct user_peek *p, u32 *frame,
                                        u32 *out, const u32 *end)
{
    const u32 base = place_base(p->page);
    u32 *last = (u32 *)(p->at + PAGE_SIZE - 4);
    u32 at = place(*frame, base);
    if (unlikely(at < PLACE_FIRST))
        return out;
    while (likely(end - out >= (s32)BATCH)) {
#pragma GCC unroll 16
        for (u32 i = 0; i < BATCH; i++) {
            u32 next = place(OPAQUE(last[(s32)at]), base);
            u32 back = OPAQUE(last[(s32)at + 1]);
            if (unlikely(!back)) { // no return address: the chain ends
                *frame = 0;
                return out + i;
            }
            out[i] = back;
            if (unlikely(next <= at)) {
                *frame = caller_above(last, at, base);
                return out + i + 1;
            }
            at = next;
        }
        out += BATCH;
    }
    *frame = place_address(OPAQUE(at), base);
    return out;
}

// Walks a chain from page to page; returns the end of what was written.
static NOINLINE u32 *walk_user(struct user_peek *p, u32 frame, u32 *out,
                               u32 *flags)
{
    const u32 *limit = out + SPROFILE_FRAMES_MAX - 1;
    for (;;) {
        out = walk_page(p, &frame, out, limit);
        if (likely(!frame))
            return out;
        struct frame f;
        u32 end = frame & 3                         ? SPROFILE_F_USER_LOST
                  : out == limit                    ? SPROFILE_F_USER_DEEP
                  : !read_split_frame(p, frame, &f) ? SPROFILE_F_USER_CUT
                                                    : 0;
        if (end) {
            *flags |= end;
            return out;
        }
        if (!f.back)
            return out;
        *out++ = f.back;
        if (!f.caller)
            return out;
        frame = f.caller > frame ? f.caller : NO_FRAME;
    }
}

// ebp is not a frame pointer: searches the top of the stack for a saved one.
static NOINLINE u32 *walk_saved(struct user_peek *p, u32 *out, u32 words,
                                struct user_part *part)
{
    u32 *chain = out + 2 + words, eip = *chain;
    u32 frame =
        find_saved(p, out[0], out + 2, MIN(words, (u32)SPROFILE_STACK_WORDS));
    part->flags |= SPROFILE_F_USER_GAP | (p->pt ? 0 : SPROFILE_F_USER_CUT);
    part->stack_words++;
    *chain++ = frame;
    *chain = eip;
    return frame ? walk_user(p, frame, chain + 1, &part->flags) : chain + 1;
}

// Like stack_top, for `most` words.
static u32 stack_deep(struct user_peek *p, u32 esp, u32 *out, u32 most)
{
    u32 n = 0;
    while (n < most && !(esp & 3)) {
        u32 va = esp + 4 * n;
        u32 words = MIN((PAGE_SIZE - (va & (PAGE_SIZE - 1))) / 4, most - n);
        const u32 *at = user_peek(p, va, 4 * words);
        if (!at)
            break;
        void *to = out + n;
        n += words;
        __asm__ volatile("rep movsl"
                         : "+S"(at), "+D"(to), "+c"(words)
                         :
                         : "memory");
    }
    return n;
}

// In the chain from `from` to `end`, returns the position after the return to
// signal frame `g`'s restorer, or `from` if there is none.
static u32 *pass_handler(u32 *from, const u32 *end,
                         const struct sprofile_signal *g)
{
    u32 *at = from;
    while (at < end && *at != g->back)
        at++;
    return at < end ? at + 1 : from;
}

// Adds signal frames whose handlers have not returned. Where the chain ends at
// such a handler's return, because the interrupted code has no frame pointer or
// is on another stack, the walk continues from the interrupted registers. A
// handler that has returned to its restorer, where the sample interrupted it,
// is not in the chain.
static NOINLINE u32 *add_signals(struct user_peek *p, u32 esp, u32 *chain,
                                 struct user_part *part)
{
    struct sprofile_signal got[SPROFILE_SIGNALS_MAX];
    u32 count = unwind_signals(p, esp, got), eip = *chain;
    u32 *at = chain + part->depth, *next = chain + 1;
    for (u32 i = 0; i < count; i++) {
        struct sprofile_signal *g = &got[i];
        if (eip - g->back >= SPROFILE_RESTORER_BYTES)
            next = pass_handler(next, at, g);
        eip = g->eip;
        if (next == at) {
            g->from = is_frame(p, g->ebp, g->esp)
                          ? g->ebp
                          : find_saved(p, g->esp, g->stack, g->stack_words);
            part->flags &= ~(u32)SPROFILE_F_USER_LOST;
            if (g->from && at - chain <= (s32)SPROFILE_FRAMES_MAX)
                at = walk_user(p, g->from, at, &part->flags);
        }
    }
    part->depth = (u32)(at - chain);
    part->flags |= SPROFILE_F_USER_SIGNALS;
    memcpy(at, got, count * sizeof(got[0]));
    return at + count * (sizeof(got[0]) / 4);
}

static ALWAYS_INLINE u32 *unwind_from(struct user_context u, bool user_mode,
                                      u32 deep_words, u32 *out,
                                      struct user_part *part)
{
    struct user_peek p;
    user_peek_begin(&p, u.esp, user_mode);
    u32 words = OPAQUE(deep_words ? stack_deep(&p, u.esp, out + 2, deep_words)
                                  : stack_top(&p, u.esp, out + 2));
    u32 *chain = out + 2 + words, *at;
    part->stack_words = 2 + words;
    part->flags = deep_words && words == deep_words ? SPROFILE_F_USER_MORE : 0;
    out[0] = u.esp;
    out[1] = u.ebp;
    *chain = u.eip;
    if (likely(is_frame(&p, u.ebp, u.esp)))
        at = walk_user(&p, u.ebp, chain + 1, &part->flags);
    else
        at = walk_saved(&p, out, words, part), chain++;
    part->depth = (u32)(at - chain);
    if (unlikely(current_base()->arch.signal_count))
        at = add_signals(&p, u.esp, chain, part);
    user_peek_end(&p);
    return at;
}

u32 *unwind_user(const struct trapframe *tf, u32 *out, struct user_part *part)
{
    struct user_context u = { tf->eip, tf->esp, tf->ebp };
    return unwind_from(u, true, 0, out, part);
}

u32 *unwind_left_user(const struct trapframe *tf, u32 *out,
                      struct user_part *part)
{
    struct user_context u;
    if (get_user_registers(tf, &u))
        return unwind_from(u, false, 0, out, part);
    *part = (struct user_part){ 0, 0, 0 };
    return out;
}

u32 *unwind_user_deep(const struct trapframe *tf, u32 *out,
                      struct user_part *part)
{
    struct user_context u;
    u32 words = part->stack_words;
    bool user_mode = trap_from_user(tf);
    *part = (struct user_part){ 0, 0, 0 };
    // A frame from kernel mode has no esp and ss; the kernel stack may end
    // there.
    if (user_mode)
        u = (struct user_context){ tf->eip, tf->esp, tf->ebp };
    else if (!get_user_registers(tf, &u))
        return out;
    return unwind_from(u, user_mode, words, out, part);
}

bool unwind_user_pc(const struct trapframe *tf, u32 *out)
{
    struct user_context u = { .eip = tf->eip };
    bool known = trap_from_user(tf) || get_user_registers(tf, &u);
    *out = u.eip;
    return known;
}
