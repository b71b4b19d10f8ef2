// Allocations that fail on demand.
//
// A thread's own count is private to it; `machine` is updated with atomic
// operations. `fail_alloc_used` is only ever set: a reader that sees it late
// misses only allocations from before it was set.
#ifdef CHECKED

#include "kernel/debug/fail_alloc.h"

#include "kernel/base/cmdline.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/debug/callers.h"
#include "kernel/fs/devfs.h"
#include "kernel/sched/thread.h"
#include "lib/format.h"
#include "lib/string.h"

KERNEL_ARG(
    fail_alloc,
    "fail_alloc=N[,SITE[,once]]: the Nth allocation (below SITE, counting "
    "each call chain once) fails");

#define TRACE_MAX 48u // return addresses searched for a site
#define DEVICE_MAJOR 10
#define DEVICE_MINOR 243

bool fail_alloc_used;
static struct fail_alloc machine;
static bool once;                     // `machine` counts each call chain once
static u32 counted[CALLERS_MAX / 32]; // a bit for each call chain: it was

// "N", "N,SITE", "N SITE", each with or without a newline. 0 or -EINVAL.
static int parse(const char *text, struct fail_alloc *out)
{
    u32 n = 0;
    for (; *text >= '0' && *text <= '9' && n < 100000000; text++)
        n = n * 10 + (u32)(*text - '0');
    out->fired = 0;
    if (*text == ' ' || *text == ',')
        text++;
    const char *end = strchr(text, '\n');
    size_t length = end ? (size_t)(end - text) : strlen(text);
    if (length >= FAIL_SITE_MAX)
        return -EINVAL;
    memcpy(out->site, text, length);
    out->site[length] = '\0';
    out->left = n;
    return n ? 0 : -EINVAL;
}

void fail_alloc_start(void)
{
    if (!arg_fail_alloc.present)
        return;
    int err = parse(arg_fail_alloc.value, &machine);
    char *option = strchr(machine.site, ',');
    if (option) {
        *option = '\0';
        once = !strcmp(option + 1, "once");
    }
    if (err || (option && !once))
        panic("fail_alloc=%s: not N or N,SITE or N,SITE,once",
              arg_fail_alloc.value);
    WRITE_ONCE(fail_alloc_used, true);
}

static bool called_from(const char *site)
{
    u32 pcs[TRACE_MAX], offset;
    u32 n = backtrace(frame_pointer(), pcs, TRACE_MAX);
    for (u32 i = 0; i < n; i++) {
        const char *name = ksym_lookup(pcs[i], &offset);
        if (name && !strcmp(name, site))
            return true;
    }
    return false;
}

static bool was_counted(u16 chain)
{
    u32 bit = 1u << chain % 32;
    return __atomic_fetch_or(&counted[chain / 32], bit, __ATOMIC_RELAXED) & bit;
}

// Counts this allocation; true if it is the one to fail.
static bool counts_down(struct fail_alloc *f)
{
    u32 left = READ_ONCE(f->left);
    if (!left || (f->site[0] && !called_from(f->site)))
        return false;
    if (f == &machine && once && was_counted(callers_here()))
        return false;
    while (left &&
           !__atomic_compare_exchange_n(&f->left, &left, left - 1, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    if (left != 1)
        return false;
    f->fired = callers_here();
    return true;
}

NOINLINE bool fail_alloc_due(void)
{
    struct thread *t = this_cpu()->thread;
    if (t && !this_cpu()->irq_depth && counts_down(&t->fail_alloc))
        return true;
    if (!counts_down(&machine))
        return false;
    callers_log("fail_alloc: no memory for this allocation:", machine.fired);
    return true;
}

// --- /dev/failalloc ---------------------------------------------------------

static int arm(struct file *f UNUSED, struct io *io, u64 *pos)
{
    char text[FAIL_SITE_MAX + 16];
    size_t n = io->left;
    struct fail_alloc new;
    if (n >= sizeof(text))
        return -EINVAL;
    int err = io_from(io, text, n);
    if (err)
        return err;
    text[n] = '\0';
    err = parse(text, &new);
    if (err)
        return err;
    WRITE_ONCE(fail_alloc_used, true);
    current->fail_alloc = new;
    *pos = 0; // each read returns the whole answer
    return (int)n;
}

static size_t describe(u16 fired, char *text, size_t size)
{
    const u32 *pcs;
    u32 n = callers_get(fired, &pcs), offset = 0;
    size_t at = (size_t)format(text, size, fired ? "fired" : "not fired");
    for (u32 i = 0; i < n && at < size; i++) {
        const char *name = ksym_lookup(pcs[i], &offset);
        at += (size_t)format(text + at, size - at, " %s+%#x", name ? name : "?",
                             offset);
    }
    at = MIN(at, size - 2);
    text[at] = '\n';
    return at + 1;
}

static int disarm(struct file *f UNUSED, struct io *io, u64 *pos)
{
    char text[640];
    current->fail_alloc.left = 0;
    size_t n = describe(current->fail_alloc.fired, text, sizeof(text));
    u32 from = (u32)MIN(*pos, (u64)n);
    n = MIN(n - from, io->left);
    int err = io_to(io, text + from, n);
    if (err)
        return err;
    *pos += n;
    return (int)n;
}

static const struct file_ops device_ops = { .read = disarm, .write = arm };
static const struct char_device failalloc_device = {
    .name = "failalloc",
    .rdev = DEVICE_NUMBER(DEVICE_MAJOR, DEVICE_MINOR),
    .mode = 0600,
    .ops = &device_ops,
};
CHAR_DEVICE(failalloc_device);

#endif
