// What the guest executes (oracle.h).
#include "oracle.h"

#include <stdlib.h>

struct cpu *running;
u32 unsettled;
u64 total;
u64 segments_begun;
static bool stopped; // no more is counted

// The result is also written now and then, for runs that are killed: more
// seldom if it is large, so that it takes a small part of the time.
#define FLUSH_INSNS (1u << 26)
#define FLUSH_INSNS_PER_TALLY 512
u64 flush_at = FLUSH_INSNS;

void count_flush(void)
{
    u64 large = tallies.count * FLUSH_INSNS_PER_TALLY;
    result_write(false);
    flush_at = total + (large > FLUSH_INSNS ? large : FLUSH_INSNS);
}

void count_stop(void)
{
    stopped = true;
    result_write(true);
}

// Whether the exception is a fault whose instruction QEMU's clock takes back:
// one raised by the access itself, not while translating.
static bool is_fault(int vector)
{
    return vector == 0 || (vector >= 10 && vector <= 14) || vector == 17;
}

static void note_cut(struct cpu *c, u32 insns)
{
    struct block *b = c->block;
    ++*tally_cut(c->tally, insns);
    total -= b->insns - insns;
}

bool settle(struct cpu *c, const struct block *next)
{
    struct block *b = c->block;
    u32 begun = (u32)c->segments;
    u32 insns = b->segment_end[begun - 1];
    u32 last = b->insn_at[insns - 1];
    bool complete = begun == b->segments;
    bool fault = next->entry >= 0 && is_fault(next->entry);
    if (complete && (!b->seals || c->slot || (!fault && next->at != last)))
        return true;
    note_cut(c, fault || next->at == last ? insns - 1 : insns);
    return false;
}

// Whether the CPU's last block may have ended early; settle() decides that
// later.
static bool may_be_cut(const struct cpu *c)
{
    const struct block *b = c->block;
    return c->segments < b->segments ||
           (b->seals && !c->slot && b->end != END_HLT);
}

void take_turn(struct cpu *c)
{
    if (running) {
        running->unsettled = may_be_cut(running);
        unsettled += running->unsettled;
    }
    unsettled -= c->unsettled;
    c->unsettled = false;
    running = c;
}

void execute(unsigned index, void *data)
{
    struct block *b = data;
    struct cpu *c = &cpus[index];
    if (stopped)
        return;
    if (running)
        running->segments = segments_begun;
    if (running != c)
        take_turn(c);
    u32 site = 0;
    if (!c->thread) {
        c->thread = c->first = thread_new("firmware of CPU");
        c->thread->node->number = index;
        c->in_firmware = true;
    } else {
        struct block *p = c->block;
        u32 begun = (u32)c->segments;
        site = p->insn_at[p->segment_end[begun - 1] - 1];
        bool ended = settle(c, b);
        if (ended && p->end == END_IRET)
            site = leave(c, site);
    }
    // The firmware is below the kernel, and at the end of the addresses.
    if (c->in_firmware && is_kernel_code(b)) {
        c->in_firmware = false;
        c->thread->node = root("start-up of CPU", index);
    }
    if (b->entry >= 0)
        enter(c, (u32)b->entry, site);
    else if (b->at == options.arch_exec)
        c->thread->execed = true;
    else if (b->at == options.sigframe_push)
        c->thread->signalled = true;
    else if (b->at == options.sigframe_pop)
        c->thread->left_signal = true;
    if (fold_is_due())
        fold();
    struct thread *t = c->thread;
    struct node *n = c->in_user ? t->user_node : t->node;
    if (b->node != n) {
        c->tally = tally_of(n, b);
        b->node = n;
        b->count = &c->tally->count;
    } else {
        c->tally =
            (struct tally *)((char *)b->count - offsetof(struct tally, count));
    }
    ++*b->count;
    total += b->insns;
    if (b->end == END_HLT) {
        clock_check.halted = true;
        clock_check.halter = root_of(n);
    } else if (b->end == END_RDTSC && b->at >= options.to_user &&
               b->at < options.trap_return)
        c->rdtsc_at = unsettled ? 0 : total;
    c->block = b;
    c->slot = 0;
    c->reads = 0;
    segments_begun = 1;
    if (b->marks_end)
        count_stop();
    else if (total >= flush_at)
        count_flush();
}

void called(unsigned cpu, u32 info, u64 address, void *data)
{
    struct cpu *c = &cpus[cpu];
    struct block *b = data;
    struct thread *t = c->thread;
    if (c->slot || c->block != b || !qemu_plugin_mem_is_store(info))
        return;
    c->slot = (u32)address;
    if (c->in_user) {
        user_call(t, (u32)address, b->at + b->size);
        return;
    }
    if (b->at < options.kernel)
        return; // the firmware, or the kernel's start without paging
    kernel_call(t, (u32)address, b->at + b->size);
}

void returned(unsigned cpu, u32 info, u64 address, void *data)
{
    struct cpu *c = &cpus[cpu];
    if (c->slot || c->block != data || qemu_plugin_mem_is_store(info))
        return;
    c->slot = (u32)address;
    if (c->in_user)
        user_return(c->thread, (u32)address);
    else if (c->block->at >= options.kernel)
        kernel_return(c, (u32)address);
}

void iret_read(unsigned cpu, u32 info, u64 address, void *data)
{
    struct cpu *c = &cpus[cpu];
    if (c->block != data || qemu_plugin_mem_is_store(info))
        return;
    if (!c->reads) {
        c->slot = (u32)address;
        c->reads = 1;
    } else if ((u32)address == c->slot + 4 * c->reads) {
        c->reads++;
    }
}

// The last instruction of a block has accessed memory, so it has executed.
void accessed(unsigned cpu, u32 info, u64 address, void *data)
{
    (void)address;
    const struct block *b = data;
    if (cpus[cpu].block == b &&
        (!b->modifies || qemu_plugin_mem_is_store(info)))
        cpus[cpu].slot = 1;
}

void born(unsigned cpu, u32 info, u64 address, void *data)
{
    (void)info;
    thread_born(cpus[cpu].thread, (u32)address, data != NULL);
}

void ended(uint64_t plugin, void *data)
{
    (void)plugin, (void)data;
    if (!stopped)
        count_stop();
}
