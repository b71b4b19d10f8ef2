// Signal frames in a sample (arch/thread.h keeps the list). The program may
// have changed them, or left them by longjmp: the reader of the sample uses one
// only where a function really returns to its restorer.
#include "arch/i386/cpu/unwind_signals.h"

#include "arch/i386/cpu/sigcontext.h"
#include "arch/sigframe.h"
#include "lib/string.h"
#include <strobe/kbox.h>

static bool read_word(struct user_peek *p, u32 at, u32 *out)
{
    const u32 *word = at & 3 ? NULL : user_peek(p, at, 4);
    *out = word ? READ_ONCE(*word) : 0;
    return word;
}

static bool read_signal(struct user_peek *p, const struct signal_frame *f,
                        struct sprofile_signal *out)
{
    memset(out, 0, sizeof(*out));
    out->frame = f->at;
    out->back = f->restorer;
    if (!read_word(p, f->context + offsetof(struct sigcontext, eip),
                   &out->eip) ||
        !read_word(p, f->context + offsetof(struct sigcontext, esp),
                   &out->esp) ||
        !read_word(p, f->context + offsetof(struct sigcontext, ebp), &out->ebp))
        return false;
    u32 n = 0;
    while (n < SPROFILE_STACK_WORDS &&
           read_word(p, out->esp + 4 * n, &out->stack[n]))
        n++;
    out->stack_words = n;
    out->from = out->ebp;
    return true;
}

// Whether the stack pointer is past the frame, so that it has been left.
static bool frame_left(const struct signal_frame *f, u32 esp)
{
    bool alternate = on_altstack(f->at);
    return alternate == on_altstack(esp) ? f->at + 8 < esp : alternate;
}

u32 unwind_signals(struct user_peek *p, u32 esp,
                   struct sprofile_signal out[SPROFILE_SIGNALS_MAX])
{
    const struct arch_thread *t = &current_base()->arch;
    u32 found = 0;
    for (u32 n = READ_ONCE(t->signal_count); n-- > 0;) {
        if (!frame_left(&t->signals[n], esp) &&
            read_signal(p, &t->signals[n], &out[found]))
            found++;
    }
    return found;
}
