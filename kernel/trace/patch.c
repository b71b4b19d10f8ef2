// Patches of the kernel's code: calls, branches, and their statistics.
//
// `patch_mutex` guards the users of branches, and the statistics. At start-up
// there is one CPU and no thread: no lock is needed.
#include "kernel/trace/patch.h"

#include "arch/cpu.h"
#include "kernel/base/log.h"
#include "kernel/base/providers.h"
#include "kernel/sched/stop_machine.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/mutex.h"
#include "lib/branch.h"
#include "lib/string.h"

static struct mutex patch_mutex = MUTEX_INIT(patch_mutex, "text patches");
static u32 patched, patches; // sites that differ from a NOP; calls
static u64 longest;          // TSC cycles from open to close

// Either calls, or a branch.
struct patch {
    const u32 *sites;
    u32 count, target;
    const struct branch *branch;
    bool on;
};

static void write_branch(const struct patch *p)
{
    for (const struct text_branch *b = text_branches_start;
         b < text_branches_end; b++) {
        u8 jump[TEXT_SITE];
        if (b->key != p->branch)
            continue;
        text_jump(jump, b->site, b->target);
        text_write(b->site, p->on ? text_nop : jump, p->on ? jump : text_nop);
        patched += p->on ? 1 : -1u;
    }
}

static void write_all(void *arg)
{
    const struct patch *p = arg;
    u64 began = rdtsc();
    text_open();
    if (p->branch)
        write_branch(p);
    else
        text_write_calls(p->sites, p->count, p->target, p->on);
    text_close();
    longest = MAX(longest, rdtsc() - began);
    patches++;
}

// Before the first thread; `current` is NULL, or the idle thread that the code
// of the start-up becomes.
static bool starting(void)
{
    return !current || current == sched_idle_thread(0);
}

static void lock(void)
{
    if (!starting())
        mutex_lock(&patch_mutex);
}

static void unlock(void)
{
    if (!starting())
        mutex_unlock(&patch_mutex);
}

static void run(struct patch *p)
{
    if (!starting()) {
        stop_machine(write_all, p);
        return;
    }
    assert(cpu_count == 1);
    u32 flags = irq_save();
    write_all(p);
    irq_restore(flags);
}

void text_patch(const u32 *sites, u32 count, u32 target, bool on)
{
    lock();
    run(&(struct patch){ sites, count, target, .on = on });
    patched += on ? count : -count;
    unlock();
}

void branch_set(struct branch *b, bool on)
{
    lock();
    assert(on || b->users);
    u32 before = b->users;
    WRITE_ONCE(b->users, b->users + (on ? 1 : -1u)); // trace_wants_samples
    if (!before != !b->users)
        run(&(struct patch){ .branch = b, .on = on });
    unlock();
}

void text_report(struct sysinfo_text *out)
{
    lock();
    *out = (struct sysinfo_text){
        .entries = (u32)(text_entries_end - text_entries_start),
        .branches = (u32)(text_branches_end - text_branches_start),
        .patched = patched,
        .patches = patches,
        .longest = longest,
    };
    unlock();
}

static void serialize(void *arg UNUSED)
{
    text_serialize();
}

void text_patch_byte(u32 address, u8 old, u8 new)
{
    mutex_lock(&patch_mutex);
    text_write_byte(address, old, new);
    smp_call_all(serialize, NULL);
    mutex_unlock(&patch_mutex);
}
