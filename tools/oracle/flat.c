// Flat counts: only how often each block was executed, not by which path
// (oracle.h). A counter of the block, which QEMU increments without a call,
// shows whether it ran to its end; what happened is settled only if not.
#include "oracle.h"

#define NOBODY CPU_MAX
#define LOWEST_PROGRAM (4u << 20)

static struct block none; // before the first
static struct block *last = &none;
static u32 turn; // the CPU that runs; NOBODY: no more is counted
static bool kernel_began;

// Which code the block is of.
static struct node *origin_of(const struct block *b)
{
    static struct node *firmware, *kernel, *programs;
    if (!firmware) {
        firmware = root("firmware", 0);
        kernel = root("kernel", 1);
        programs = root("program", 2);
    }
    if (is_kernel_code(b)) {
        kernel_began = true;
        return kernel;
    }
    return kernel_began && b->at >= LOWEST_PROGRAM ? programs : firmware;
}

static u64 access_of(const struct block *b)
{
    return b->modifies ? 2 * FLAT_ACCESS : FLAT_ACCESS;
}

void flat_init(struct block *b)
{
    b->reads_clock = b->end == END_RDTSC && b->at >= options.to_user &&
                     b->at < options.trap_return;
    b->pauses = b->marks_end || b->reads_clock || b->end == END_HLT;
    b->whole = b->end == END_IRET ? UINT64_MAX
               : b->seals         ? access_of(b)
                                  : b->segments - 1;
    b->node = origin_of(b);
    tally_of(b->node, b);
}

static void result(bool ends)
{
    for (u32 i = 0; i < block_count; i++) {
        struct block *b = all_blocks[i];
        tally_of(b->node, b)->count = b->begun;
    }
    if (ends)
        count_stop();
    else
        count_flush();
}

// Settles the previous block of this CPU, and notes what the last one did.
static void pause_before(u32 index, const struct block *b)
{
    struct cpu *c = &cpus[index];
    if (last != &none) {
        running = &cpus[turn];
        running->block = last;
        running->segments = 1 + (u32)last->progress;
        running->slot = last->progress >= access_of(last);
    }
    if (running != c)
        take_turn(c);
    turn = index;
    if (c->block) {
        c->tally = tally_of(c->block->node, c->block);
        if (settle(c, b) && c->block->end == END_IRET && !is_kernel_code(b))
            check_clock();
    }
    if (b->end == END_HLT) {
        clock_check.halted = true;
        clock_check.halter = b->node;
    }
}

static void pause_after(const struct block *b)
{
    if (b->reads_clock)
        cpus[turn].rdtsc_at = unsettled ? 0 : total;
    if (b->marks_end) {
        result(true);
        turn = NOBODY;
    } else if (total >= flush_at) {
        result(false);
    }
}

static inline void begin(struct block *b)
{
    last = b;
    b->progress = 0;
    b->begun++;
    total += b->insns;
}

// Not inlined, so that execute_flat saves no registers.
static __attribute__((noinline)) void begin_slowly(u32 index, struct block *b)
{
    if (turn == NOBODY)
        return;
    pause_before(index, b);
    begin(b);
    pause_after(b);
}

void execute_flat(unsigned index, void *data)
{
    struct block *b = data;
    bool pauses = (last->progress < last->whole) | (index != turn) | b->pauses |
                  (total >= flush_at);
    if (__builtin_expect(pauses, false))
        begin_slowly(index, b);
    else
        begin(b);
}

void ended_flat(uint64_t plugin, void *data)
{
    (void)plugin, (void)data;
    if (turn != NOBODY)
        result(true);
}

void flat_segment(unsigned cpu, void *block)
{
    (void)cpu;
    ((struct block *)block)->progress++;
}

void flat_access(unsigned cpu, u32 info, u64 address, void *block)
{
    (void)cpu, (void)info, (void)address;
    ((struct block *)block)->progress += FLAT_ACCESS;
}
