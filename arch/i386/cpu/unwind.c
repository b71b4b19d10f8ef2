// Call chains of the kernel and of user programs.
//
// Frame pointers give the callers of a function whose frame stands. Between its
// first instruction and that, and from its end to its return, the return
// address is still, or again, at the top of the stack: for the kernel's own
// code the frame table (kernel/init/kframes.c), which the build makes from the
// compiler's own account, tells where. In the entry code a frame is under
// construction: what the CPU pushed is looked for.
//
// Nothing is believed: each address is checked against the page tables before
// it is read, and frames must lie one above the other.

#include "arch/unwind.h"
#include "arch/cpu.h"
#include "arch/i386/mm/entry.h"
#include "arch/mmu.h"
#include "arch/peek.h"
#include "arch/thread.h"
#include "kernel/debug/kasan.h"
#include "kernel/debug/kcsan.h"
#include "kernel/init/log.h"
#include "kernel/sched/task.h"
#include <strobe/kbox.h>

extern const char text_start[], text_end[];      // linker.ld
extern const char trap_stubs[], trap_code_end[]; // entry.S

// From the stack pointer to what the CPU pushed, in the entry code.
#define ENTRY_WORDS 20u
// A saved frame pointer points no farther than this from where it was found.
#define SAVED_REACH KIB(64)
#define EFLAGS_ALWAYS 0x2u
#define EFLAGS_NEVER 0xffc08028u

struct walk {
    u32 low, high; // the stack that is walked; what is read lies in it
    u32 page;      // the last that was found mapped
    u32 eip, esp, ebp;
};

static bool is_text(u32 pc)
{
    return pc - (u32)text_start < (u32)(text_end - text_start);
}

static bool is_entry(u32 pc)
{
    return pc - (u32)trap_stubs < (u32)(trap_code_end - trap_stubs);
}

// Stacks outside the thread's own (a CPU's first, another thread's during the
// switch) end at a page that is not mapped, or where frames stop making sense.
static bool mapped(struct walk *w, u32 at)
{
    u32 page = at & PAGE_MASK;
    if (page == w->page)
        return true;
    if (at >= VMAP_BASE) {
        const void *entry = leaf_entry(&kernel_pagetable, at);
        if (!entry || !(*(const u32 *)entry & ENTRY_PRESENT))
            return false;
    }
    w->page = page;
    return true;
}

// The stack is of the thread that was interrupted here, in the middle of a
// write to it perhaps: what is read is checked before it is followed.
static NO_KASAN NO_KCSAN bool read(struct walk *w, u32 at, u32 *value)
{
    if (at & 3 || at < w->low || at >= w->high || !mapped(w, at))
        return false;
    *value = *(const u32 *)at;
    return true;
}

// Takes the walk to what a trap frame, whose part that the CPU pushed lies at
// `at`, interrupted. False: that was user mode.
static bool cross(struct walk *w, u32 at)
{
    u32 cs;
    if (!read(w, at + 4, &cs) || (cs & 0xffff) != KERNEL_CS ||
        !read(w, at, &w->eip))
        return false;
    w->esp = at + 12;
    return is_text(w->eip);
}

// In the entry code.
static bool cross_partial(struct walk *w)
{
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

// Where the return address of the interrupted function is; takes ebp to its
// caller's. 0: not known.
static u32 first_return(struct walk *w)
{
    u32 kind = kframe_kind(w->eip), at;
    if (kind == KFRAME_UNKNOWN)
        return 0;
    if (kind == KFRAME_STANDS) {
        at = w->ebp + 4;
        return read(w, w->ebp, &w->ebp) ? at : 0;
    }
    at = w->esp + 4 * (kind >> 1);
    if (kind & 1 && !read(w, at - 4, &w->ebp))
        return 0;
    return at;
}

// From the return address at `slot` outwards, until the next interrupt's frame.
// True: the walk is at what that interrupted.
static bool walk_frames(struct walk *w, u32 slot, u32 *pcs, u32 *n, u32 max,
                        bool *cut)
{
    u32 pc;
    while (slot && read(w, slot, &pc) && is_text(pc)) {
        w->low = slot; // callers' frames lie above
        if (is_entry(pc)) {
            const struct trapframe *tf = (const struct trapframe *)(slot + 4);
            return read(w, (u32)&tf->ebp, &w->ebp) && cross(w, (u32)&tf->eip);
        }
        if (*n == max) {
            *cut = true;
            return false;
        }
        pcs[(*n)++] = pc;
        slot = w->ebp + 4;
        if (!w->ebp || !read(w, w->ebp, &w->ebp))
            slot = 0;
    }
    return false;
}

u32 unwind_kernel(const struct trapframe *tf, u32 *pcs, u32 max, bool *cut)
{
    struct walk w = { .eip = tf->eip, .esp = (u32)&tf->esp, .ebp = tf->ebp };
    w.low = w.page = (u32)tf;
    w.page &= PAGE_MASK;
    u32 stack = (u32)current->kstack;
    w.high = (u32)tf - stack < KSTACK_SIZE ? stack + KSTACK_SIZE
                                           : (u32)tf + KSTACK_SIZE;
    u32 n = 0;
    bool more = true;
    *cut = false;
    while (more) {
        if (n == max) {
            *cut = true;
            break;
        }
        pcs[n] = w.eip + (n > 0);
        n++;
        if (is_entry(w.eip))
            more = cross_partial(&w);
        else
            more = walk_frames(&w, first_return(&w), pcs, &n, max, cut);
    }
    return n;
}

// An interrupt may have hit the kernel while it changes that frame.
NO_KCSAN bool unwind_user_context(const struct trapframe *tf,
                                  struct user_context *out)
{
    const struct thread *t = current;
    if (trap_from_user(tf)) {
        *out = (struct user_context){ tf->eip, tf->esp, tf->ebp };
        return true;
    }
    // In the middle of a switch the stack is another thread's.
    if (t->task == &kernel_task || (u32)tf - (u32)t->kstack >= KSTACK_SIZE)
        return false;
    const struct trapframe *user = thread_trapframe(current);
    *out = (struct user_context){ user->eip, user->esp, user->ebp };
    // On the way in and out by the entry code the frame is not whole, but ebp
    // is the user's.
    if (is_entry(tf->eip) && (u32)&tf->esp + 4 * ENTRY_WORDS > (u32)(user + 1))
        out->ebp = tf->ebp;
    return true;
}

// What a frame pointer points to.
struct frame {
    u32 caller, back; // the caller's frame, the return address
};

// Where stacks are aligned to words only, the two may lie in different pages.
static bool read_frame(struct user_peek *p, u32 at, struct frame *out)
{
    const u32 *f = user_peek(p, at, sizeof(*out));
    if (likely(f)) {
        *out = (struct frame){ READ_ONCE(f[0]), READ_ONCE(f[1]) };
        return true;
    }
    f = user_peek(p, at, 4);
    if (!f)
        return false;
    out->caller = READ_ONCE(*f);
    f = user_peek(p, at + 4, 4);
    if (!f)
        return false;
    out->back = READ_ONCE(*f);
    return true;
}

static ALWAYS_INLINE bool is_frame(struct user_peek *p, u32 at, u32 above)
{
    struct frame f;
    return at >= above && !(at & 3) && read_frame(p, at, &f) &&
           f.back - PAGE_SIZE < USER_END - PAGE_SIZE &&
           (!f.caller || f.caller > at);
}

// A function that uses ebp for something else (a system call's sixth argument)
// has saved its caller's near the top of the stack.
static u32 find_saved(struct user_peek *p, u32 esp, const u32 *top, u32 words)
{
    for (u32 i = 0; i < words; i++) {
        if (top[i] - esp < SAVED_REACH &&
            is_frame(p, top[i], esp + 4 * (i + 1)))
            return top[i];
    }
    return 0;
}

// The usual number of words, in one page: it is in every sample.
u32 user_stack_top(struct user_peek *p, u32 esp, u32 *out, u32 words)
{
    u32 n = 0;
    const u32 *at = esp & 3 ? NULL : user_peek(p, esp, 4 * words);
    if (likely(at && words == SPROFILE_STACK_WORDS)) {
#pragma GCC unroll 16
        for (; n < SPROFILE_STACK_WORDS; n++)
            out[n] = READ_ONCE(at[n]);
        return n;
    }
    while (n < words && !(esp & 3) && (at = user_peek(p, esp + 4 * n, 4)))
        out[n++] = READ_ONCE(*at);
    return n;
}

// Follows the frame at *frame, and those that it leads to while all is as it
// should be and they lie in the page that `p` shows: writes their return
// addresses from `out` to `end`. *frame: the first one that is not looked at.
static NO_KASAN NOINLINE u32 *walk_page(const struct user_peek *p, u32 *frame,
                                        u32 *out, const u32 *end)
{
    const u8 *page = p->at;
    u32 base = p->page - 4, slot = *frame - base; // of the return address
    while (slot && !(slot & ~(PAGE_SIZE - 4)) && out < end) {
        u32 next = READ_ONCE(*(const u32 *)(page + slot - 4)) - base;
        u32 back = READ_ONCE(*(const u32 *)(page + slot));
        *out = back;
        if (unlikely(!back || next <= slot))
            break;
        out++;
        slot = next;
    }
    *frame = slot + base;
    return out;
}

NO_KASAN u32 unwind_user(struct user_peek *p, const struct user_context *u,
                         const u32 *top, u32 words, u32 *pcs, u32 max,
                         u32 *first, enum unwind_end *end)
{
    u32 *out = pcs, *limit = pcs + max, frame = u->ebp;
    *out++ = u->eip;
    *end = UNWIND_COMPLETE;
    if (unlikely(!is_frame(p, frame, u->esp))) {
        frame = find_saved(p, u->esp, top, words);
        *end = p->pt ? UNWIND_GAP : UNWIND_CUT;
    }
    *first = frame;
    if (likely(frame))
        out = walk_page(p, &frame, out, limit);
    while (frame && !(frame & 3)) {
        struct frame f;
        if (out == limit || !read_frame(p, frame, &f)) {
            *end = UNWIND_CUT;
            break;
        }
        if (!f.back)
            break;
        *out++ = f.back;
        if (f.caller <= frame)
            break;
        frame = f.caller;
        out = walk_page(p, &frame, out, limit);
    }
    return (u32)(out - pcs);
}
