// A QEMU plugin that counts each executed instruction, by the path of calls
// that leads to it: docs/exact.md. The guest is a Strobe kernel on CPUs that
// take turns (-icount), so this runs on one host thread.
//
// QEMU translates and executes blocks of instructions. A block is counted when
// it begins. It may end early, in an instruction that accesses memory: so each
// block is divided into segments that end with such an instruction, and
// `segments` counts those begun. An instruction that faults has not executed,
// and QEMU's clock does not count it.
//
// The path of a thread is a stack of frames, pushed by CALL and entries into
// the kernel, and popped by RET and IRET. Frames are identified by the stack
// address that the instruction accesses. That address also shows a switch of
// threads: RET takes its return address from another thread's stack.
#include "tools/qemu/api.h"
#include "tools/qemu/x86.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

PLUGIN_EXPORT int qemu_plugin_version = API_VERSION;

typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
typedef uint8_t u8;

#define CPU_MAX 255
#define SYSCALL_VECTOR 0x80
#define NMI_VECTOR 2
#define END_MARK 0x4c434152 // user/init/command.c
#define ROOM_FOR_SIGNAL 256 // smaller than a signal frame

static struct {
    // Addresses in the kernel.
    u32 trap_stubs, syscall_entry_point, nmi_entry_point;
    u32 double_fault_entry_point, thread_begin, fork_child_begin;
    u32 arch_exec, sigframe_push, sigframe_pop, to_user, trap_return;
    u32 kernel; // its first
    const char *out, *memory;
} options;

static void fail(const char *why)
{
    fprintf(stderr, "oracle: %s\n", why);
    exit(1);
}

static void *enough(void *p)
{
    if (!p)
        fail("no memory");
    return p;
}

// --- the tree ---------------------------------------------------------------

enum node_kind { NODE_ROOT, NODE_CALL, NODE_ENTRY, NODE_SIGNAL };

// A path: its last frame was entered from the parent's.
struct node {
    u32 id, kind;
    u32 site;   // of NODE_CALL: return address; of others: the instruction
    u32 vector; // of NODE_ENTRY
    struct node *parent, *next; // `next` of the same hash
    const char *name;           // of NODE_ROOT
    u32 number;                 // of NODE_ROOT
};

#define NODE_HASH (1u << 20)
static struct node *nodes[NODE_HASH];
static struct node **all_nodes;
static u32 node_count, node_room;

static struct node *node_new(enum node_kind kind, struct node *parent)
{
    struct node *n = enough(calloc(1, sizeof(*n)));
    if (node_count == node_room) {
        node_room = node_room ? 2 * node_room : 1024;
        all_nodes =
            enough(realloc(all_nodes, node_room * sizeof(struct node *)));
    }
    n->id = node_count;
    all_nodes[node_count++] = n;
    n->kind = kind;
    n->parent = parent;
    return n;
}

static struct node *root(const char *name, u32 number)
{
    struct node *n = node_new(NODE_ROOT, NULL);
    n->name = name;
    n->number = number;
    return n;
}

static struct node *child(struct node *parent, enum node_kind kind, u32 site,
                          u32 vector)
{
    u32 h =
        (parent->id * 0x9e3779b1u ^ site * 0x85ebca6bu ^ vector << 3 ^ kind);
    h = (h ^ h >> 15) & (NODE_HASH - 1);
    for (struct node *n = nodes[h]; n; n = n->next) {
        if (n->parent == parent && n->site == site && n->kind == kind &&
            n->vector == vector)
            return n;
    }
    struct node *n = node_new(kind, parent);
    n->site = site;
    n->vector = vector;
    n->next = nodes[h];
    nodes[h] = n;
    return n;
}

// --- blocks -----------------------------------------------------------------

enum block_end { END_OTHER, END_CALL, END_RET, END_IRET, END_HLT, END_RDTSC };

struct block {
    u32 id, at, size, insns, segments;
    enum block_end end;
    bool seals;         // the last instruction may access memory
    bool modifies;      // and reads before it writes
    int entry;          // vector, or -1
    bool marks_end;     // of what is counted
    struct block *next; // of the same hash
    struct node *node;  // for which `count` counts
    u64 *count;
    u32 *segment_end; // instructions up to the end of each segment
    u32 *insn_at;     // addresses
    u8 bytes[];
};

#define BLOCK_HASH (1u << 18)
static struct block *blocks[BLOCK_HASH];
static struct block **all_blocks;
static u32 block_count, block_room;

// Executions, by node and block. `cut` counts those that ended early: by the
// number of segments begun, and whether the last instruction of them had
// executed.
struct tally {
    u32 node, block;
    u64 count;
    struct cut *cuts;
};
struct cut {
    struct cut *next;
    u32 insns; // executed
    u64 count;
};
static struct tally **tallies;
static u64 tally_count, tally_room;

static u64 tally_hash(u32 node, u32 block)
{
    u64 h = ((u64)node << 32 | block) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

static void tally_insert(struct tally **table, u64 room, struct tally *t)
{
    u64 i = tally_hash(t->node, t->block) & (room - 1);
    while (table[i])
        i = (i + 1) & (room - 1);
    table[i] = t;
}

static struct tally *tally_of(struct node *n, struct block *b)
{
    if (tally_count * 2 >= tally_room) {
        u64 room = tally_room ? 2 * tally_room : 1 << 16;
        struct tally **table = enough(calloc(room, sizeof(*table)));
        for (u64 i = 0; i < tally_room; i++) {
            if (tallies[i])
                tally_insert(table, room, tallies[i]);
        }
        free(tallies);
        tallies = table;
        tally_room = room;
    }
    u64 i = tally_hash(n->id, b->id) & (tally_room - 1);
    for (; tallies[i]; i = (i + 1) & (tally_room - 1)) {
        if (tallies[i]->node == n->id && tallies[i]->block == b->id)
            return tallies[i];
    }
    struct tally *t = enough(calloc(1, sizeof(*t)));
    t->node = n->id;
    t->block = b->id;
    tallies[i] = t;
    tally_count++;
    return t;
}

// --- threads ----------------------------------------------------------------

struct frame {
    u32 slot; // stack address of the return address; 0 if not known yet
    enum node_kind kind;
    struct node *before; // the node that the frame was entered from
};

struct frames {
    struct frame *list;
    u32 count, room;
};

struct thread {
    u32 number;
    struct frames user, kernel;
    struct node *node;      // in the kernel: the present one
    struct node *user_node; // in user mode, or when it was left
    u32 left_at;            // the instruction at which user mode was left
    bool forked;            // `user` is a copy of the creator's
    bool signalled, execed; // at the next return to user mode
    bool left_signal;
    u32 sleeps_at;       // slot from which it is resumed
    struct thread *next; // of the same hash
};

struct birth { // a thread that has not run: its slot and creator
    u32 slot;
    struct frames user;
    struct node *user_node;
    bool fork;
    struct birth *next;
};

#define SLOT_HASH 4096
static struct thread *sleepers[SLOT_HASH];
static struct birth *births;
static u32 thread_count;

struct cpu {
    struct thread *thread;
    struct block *block; // the last one begun
    u64 segments;        // begun of it
    bool in_user, in_firmware;
    u32 slot;  // that its last instruction accessed, or 0
    u32 reads; // of IRET's frame
    struct tally *tally;
    u64 rdtsc_at;   // instructions executed at RDTSC in to_user; 0: unknown
    bool unsettled; // its last block may have ended early
};
static struct cpu cpus[CPU_MAX];
static struct cpu *running; // the CPU whose turn it is
static u32 unsettled;       // number of other CPUs
static u64 total;           // instructions executed
static bool stopped;        // no more is counted

static u64 segments_begun; // of the last block

static void push(struct frames *f, u32 slot, enum node_kind kind,
                 struct node *before)
{
    if (f->count == f->room) {
        f->room = f->room ? 2 * f->room : 64;
        f->list = enough(realloc(f->list, f->room * sizeof(*f->list)));
    }
    f->list[f->count++] = (struct frame){ slot, kind, before };
}

static struct frames copy(const struct frames *f)
{
    struct frames c = { NULL, f->count, f->count };
    if (f->count) {
        c.list = enough(malloc(f->count * sizeof(*c.list)));
        memcpy(c.list, f->list, f->count * sizeof(*c.list));
    }
    return c;
}

// Removes frames from `count` on; the node before them becomes *node.
static void cut_to(struct frames *f, u32 count, struct node **node)
{
    if (count >= f->count)
        return;
    *node = f->list[count].before;
    f->count = count;
}

static struct thread *thread_new(const char *name)
{
    struct thread *t = enough(calloc(1, sizeof(*t)));
    t->number = thread_count++;
    t->node = root(name, t->number);
    return t;
}

// --- user frames ------------------------------------------------------------

// A thread of fork's kind continues its creator's path; one on a stack of its
// own does not.
static void settle_fork(struct thread *t, u32 slot, bool returns)
{
    t->forked = false;
    u32 top = t->user.count ? t->user.list[t->user.count - 1].slot : 0;
    bool same = returns ? slot == top : slot < top && top - slot < 4096;
    if (same)
        return;
    t->user.count = 0;
    t->user_node = root("thread", t->number);
}

// Index of the first frame that a CALL at `slot` shows to be gone. A signal's
// frame is gone if an older frame is, or if the stack has grown by more than
// its size.
static u32 first_gone(const struct frames *f, u32 slot)
{
    u32 first = f->count;
    for (u32 i = f->count; i-- > 0;) {
        const struct frame *g = &f->list[i];
        if (g->kind == NODE_SIGNAL) {
            if (g->slot && slot > g->slot + ROOM_FOR_SIGNAL)
                first = i;
        } else if (g->slot <= slot) {
            first = i;
        } else {
            break;
        }
    }
    return first;
}

static void user_call(struct thread *t, u32 slot, u32 site)
{
    if (t->forked)
        settle_fork(t, slot, false);
    cut_to(&t->user, first_gone(&t->user, slot), &t->user_node);
    u32 n = t->user.count;
    if (n && t->user.list[n - 1].kind == NODE_SIGNAL &&
        !t->user.list[n - 1].slot)
        t->user.list[n - 1].slot = slot;
    push(&t->user, slot, NODE_CALL, t->user_node);
    t->user_node = child(t->user_node, NODE_CALL, site, 0);
}

static void user_return(struct thread *t, u32 slot)
{
    if (t->forked)
        settle_fork(t, slot, true);
    for (u32 i = t->user.count; i-- > 0;) {
        const struct frame *f = &t->user.list[i];
        if (f->kind == NODE_SIGNAL)
            continue;
        if (f->slot == slot) {
            cut_to(&t->user, i, &t->user_node);
            return;
        }
        if (f->slot > slot)
            break;
    }
}

// --- the clock --------------------------------------------------------------

// The kernel stores the TSC, which counts instructions, on each way to user
// mode. Between two stores it must have grown by the instructions counted,
// unless all CPUs have halted.
static struct {
    const u8 *memory;
    u64 size, value, at, now;
    u32 low;
    bool known, halted, read;
    u64 readings, equal, halts, idle;
    s64 wrong; // sum of differences without a halt
    u64 wrongs;
} clock_check;

// QEMU has created the file when the guest runs.
static void map_memory(void)
{
    int fd = open(options.memory, O_RDONLY);
    struct stat info;
    if (fd < 0 || fstat(fd, &info))
        fail("cannot open the machine's memory");
    clock_check.size = (u64)info.st_size;
    clock_check.memory =
        mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (clock_check.memory == MAP_FAILED)
        fail("cannot map the machine's memory");
    close(fd);
}

static void stored_time(unsigned cpu, u32 info, u64 address, void *data)
{
    (void)data;
    struct qemu_plugin_hwaddr *hw = qemu_plugin_get_hwaddr(info, address);
    u64 phys = hw ? qemu_plugin_hwaddr_phys_addr(hw) : ~0ull;
    if (!clock_check.memory)
        map_memory();
    if (phys + 4 > clock_check.size)
        return;
    u32 low;
    memcpy(&low, clock_check.memory + phys, 4);
    clock_check.read = cpus[cpu].rdtsc_at;
    clock_check.low = low;
    clock_check.now = cpus[cpu].rdtsc_at;
}

// The CPU returns to user mode after the reading. (Some others are the kernel's
// measurement of what the return takes.)
static void check_clock(void)
{
    if (!clock_check.read)
        return;
    clock_check.read = false;
    u32 low = clock_check.low;
    u64 at = clock_check.now;
    if (clock_check.known) {
        s64 passed = (u32)(low - (u32)clock_check.value);
        s64 counted = (s64)(at - clock_check.at);
        s64 over = passed - (s64)(u32)counted;
        clock_check.readings++;
        if (over && !clock_check.halted) {
            clock_check.wrong += over;
            clock_check.wrongs++;
        } else if (!clock_check.halted) {
            clock_check.equal++;
        } else {
            clock_check.halts++;
            clock_check.idle += (u64)(over > 0 ? over : 0);
        }
    }
    clock_check.known = true;
    clock_check.halted = false;
    clock_check.value = low;
    clock_check.at = at;
}

// --- kernel frames ----------------------------------------------------------

static void sleep_at(struct thread *t, u32 slot)
{
    struct thread **head = &sleepers[slot / 4 % SLOT_HASH];
    t->sleeps_at = slot;
    t->next = *head;
    *head = t;
}

static struct thread *wake_at(u32 slot)
{
    for (struct thread **p = &sleepers[slot / 4 % SLOT_HASH]; *p;
         p = &(*p)->next) {
        struct thread *t = *p;
        if (t->sleeps_at == slot) {
            *p = t->next;
            return t;
        }
    }
    return NULL;
}

static struct thread *born_at(u32 slot)
{
    for (struct birth **p = &births; *p; p = &(*p)->next) {
        struct birth *b = *p;
        if (b->slot != slot)
            continue;
        *p = b->next;
        struct thread *t = thread_new(b->fork ? "task" : "kernel thread");
        t->user = b->user;
        t->user_node = b->user_node;
        t->forked = b->fork;
        free(b);
        return t;
    }
    return NULL;
}

// A return address that is not the innermost frame's is on another thread's
// stack.
static void kernel_return(struct cpu *c, u32 slot)
{
    struct thread *t = c->thread;
    for (u32 i = t->kernel.count; i-- > 0;) {
        const struct frame *f = &t->kernel.list[i];
        if (f->kind != NODE_CALL)
            break;
        if (f->slot == slot) {
            cut_to(&t->kernel, i, &t->node);
            return;
        }
    }
    struct thread *next = born_at(slot);
    if (!next) {
        next = wake_at(slot);
        if (!next)
            return;
        u32 n = next->kernel.count;
        if (n)
            cut_to(&next->kernel, n - 1, &next->node);
    }
    if (t->kernel.count)
        sleep_at(t, t->kernel.list[t->kernel.count - 1].slot);
    c->thread = next;
}

static struct node *interrupts[256];

static void enter(struct cpu *c, u32 vector, u32 site)
{
    struct thread *t = c->thread;
    struct node *from = c->in_user ? t->user_node : t->node;
    if (c->in_user)
        t->left_at = site;
    push(&t->kernel, 0, NODE_ENTRY, t->node);
    if ((vector >= 32 && vector != SYSCALL_VECTOR) || vector == NMI_VECTOR) {
        if (!interrupts[vector])
            interrupts[vector] = root("interrupt", vector);
        t->node = interrupts[vector];
    } else {
        t->node = child(from, NODE_ENTRY, site, vector);
    }
    c->in_user = false;
}

static void leave(struct cpu *c)
{
    struct thread *t = c->thread;
    if (c->reads >= 4) { // of EIP, CS, EFLAGS, and ESP: to user mode
        if (t->kernel.count)
            cut_to(&t->kernel, 0, &t->node);
        c->in_user = true;
        check_clock();
        if (t->execed || !t->user_node) {
            t->user.count = 0;
            t->user_node = root("program", t->number);
            t->forked = false;
        }
        if (t->signalled) {
            push(&t->user, 0, NODE_SIGNAL, t->user_node);
            t->user_node = child(t->user_node, NODE_SIGNAL, t->left_at, 0);
        }
        if (t->left_signal) {
            for (u32 i = t->user.count; i-- > 0;) {
                if (t->user.list[i].kind == NODE_SIGNAL) {
                    cut_to(&t->user, i, &t->user_node);
                    break;
                }
            }
        }
        t->execed = t->signalled = t->left_signal = false;
        return;
    }
    for (u32 i = t->kernel.count; i-- > 0;) {
        if (t->kernel.list[i].kind == NODE_ENTRY) {
            cut_to(&t->kernel, i, &t->node);
            return;
        }
    }
}

// --- the result -------------------------------------------------------------

static void write_all(FILE *f)
{
    for (u32 i = 0; i < node_count; i++) {
        const struct node *n = all_nodes[i];
        if (n->kind == NODE_ROOT)
            fprintf(f, "root %u %u %s\n", n->id, n->number, n->name);
        else
            fprintf(f, "%s %u %u %x %x\n",
                    n->kind == NODE_CALL    ? "call"
                    : n->kind == NODE_ENTRY ? "entry"
                                            : "signal",
                    n->id, n->parent->id, n->site, n->vector);
    }
    for (u32 i = 0; i < block_count; i++) {
        const struct block *b = all_blocks[i];
        fprintf(f, "block %u %x ", b->id, b->at);
        for (u32 j = 0; j < b->size; j++)
            fprintf(f, "%02x", b->bytes[j]);
        for (u32 j = 0; j < b->insns; j++)
            fprintf(f, "%c%x", j ? ',' : ' ', b->insn_at[j] - b->at);
        fputc('\n', f);
    }
    u64 sum = 0;
    for (u64 i = 0; i < tally_room; i++) {
        const struct tally *t = tallies[i];
        if (!t)
            continue;
        u32 insns = all_blocks[t->block]->insns;
        sum += t->count * insns;
        fprintf(f, "run %u %u %llu", t->node, t->block,
                (unsigned long long)t->count);
        for (const struct cut *c = t->cuts; c; c = c->next) {
            fprintf(f, " %u:%llu", c->insns, (unsigned long long)c->count);
            sum -= c->count * (insns - c->insns);
        }
        fputc('\n', f);
    }
    fprintf(f, "total %llu %llu\n", (unsigned long long)total,
            (unsigned long long)sum);
    fprintf(f,
            "clock %llu readings %llu equal %llu wrong %lld halted %llu idle "
            "%llu\n",
            (unsigned long long)clock_check.readings,
            (unsigned long long)clock_check.equal,
            (unsigned long long)clock_check.wrongs,
            (long long)clock_check.wrong, (unsigned long long)clock_check.halts,
            (unsigned long long)clock_check.idle);
}

static void stop(void)
{
    stopped = true;
    FILE *f = fopen(options.out, "a"); // after the head of tools/vm
    if (!f)
        fail("cannot write the result");
    write_all(f);
    if (fclose(f))
        fail("cannot write the result");
}

// --- execution --------------------------------------------------------------

// Whether the exception is a fault whose instruction QEMU's clock takes back:
// one raised by the access itself, not while translating.
static bool is_fault(int vector)
{
    return vector == 0 || (vector >= 10 && vector <= 14) || vector == 17;
}

static void note_cut(struct cpu *c, u32 insns)
{
    struct block *b = c->block;
    struct cut **p = &c->tally->cuts;
    while (*p && (*p)->insns != insns)
        p = &(*p)->next;
    if (!*p) {
        *p = enough(calloc(1, sizeof(**p)));
        (*p)->insns = insns;
    }
    (*p)->count++;
    total -= b->insns - insns;
}

// What the previous block of this CPU did, now that the next is known. Returns
// whether it ran to its end.
static bool settle(struct cpu *c, const struct block *next)
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

static void take_turn(struct cpu *c)
{
    if (running) {
        running->unsettled = may_be_cut(running);
        unsettled += running->unsettled;
    }
    unsettled -= c->unsettled;
    c->unsettled = false;
    running = c;
}

static void execute(unsigned index, void *data)
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
        c->thread = thread_new("firmware of CPU");
        c->thread->node->number = index;
        c->in_firmware = true;
    } else {
        struct block *p = c->block;
        u32 begun = (u32)c->segments;
        site = p->insn_at[p->segment_end[begun - 1] - 1];
        bool ended = settle(c, b);
        if (ended && p->end == END_IRET)
            leave(c);
    }
    // The firmware is below the kernel, and at the end of the addresses.
    if (c->in_firmware && b->at - options.kernel < 64u << 20) {
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
    if (b->end == END_HLT)
        clock_check.halted = true;
    else if (b->end == END_RDTSC && b->at >= options.to_user &&
             b->at < options.trap_return)
        c->rdtsc_at = unsettled ? 0 : total;
    c->block = b;
    c->slot = 0;
    c->reads = 0;
    segments_begun = 1;
    if (b->marks_end)
        stop();
}

static void called(unsigned cpu, u32 info, u64 address, void *data)
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
    u32 n = t->kernel.count;
    while (n && t->kernel.list[n - 1].kind == NODE_CALL &&
           t->kernel.list[n - 1].slot <= (u32)address)
        n--;
    cut_to(&t->kernel, n, &t->node);
    push(&t->kernel, (u32)address, NODE_CALL, t->node);
    t->node = child(t->node, NODE_CALL, b->at + b->size, 0);
}

static void returned(unsigned cpu, u32 info, u64 address, void *data)
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

static void iret_read(unsigned cpu, u32 info, u64 address, void *data)
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
static void accessed(unsigned cpu, u32 info, u64 address, void *data)
{
    (void)address;
    const struct block *b = data;
    if (cpus[cpu].block == b &&
        (!b->modifies || qemu_plugin_mem_is_store(info)))
        cpus[cpu].slot = 1;
}

// A new thread's first return address has been stored.
static void born(unsigned cpu, u32 info, u64 address, void *data)
{
    (void)info;
    struct thread *t = cpus[cpu].thread;
    struct birth *b = enough(calloc(1, sizeof(*b)));
    b->slot = (u32)address;
    b->fork = data != NULL;
    if (b->fork && t->user_node) {
        b->user = copy(&t->user);
        b->user_node = t->user_node;
    }
    b->next = births;
    births = b;
}

// --- translation ------------------------------------------------------------

static struct block *block_of(u32 at, const u8 *bytes, u32 size, u32 insns,
                              bool *is_new)
{
    u32 h = at * 0x9e3779b1u ^ size * 0x85ebca6bu;
    for (u32 i = 0; i < size; i++)
        h = h * 31 + bytes[i];
    h = (h ^ h >> 15) & (BLOCK_HASH - 1);
    for (struct block *b = blocks[h]; b; b = b->next) {
        if (b->at == at && b->size == size && b->insns == insns &&
            !memcmp(b->bytes, bytes, size)) {
            *is_new = false;
            return b;
        }
    }
    struct block *b = enough(calloc(1, sizeof(*b) + size));
    b->id = block_count;
    b->at = at;
    b->size = size;
    b->insns = insns;
    b->entry = -1;
    memcpy(b->bytes, bytes, size);
    b->next = blocks[h];
    blocks[h] = b;
    if (block_count == block_room) {
        block_room = block_room ? 2 * block_room : 1024;
        all_blocks =
            enough(realloc(all_blocks, block_room * sizeof(*all_blocks)));
    }
    all_blocks[block_count++] = b;
    *is_new = true;
    return b;
}

static int vector_of(u32 at)
{
    if (at == options.syscall_entry_point)
        return SYSCALL_VECTOR;
    if (at == options.nmi_entry_point)
        return NMI_VECTOR;
    if (at == options.double_fault_entry_point)
        return 8;
    if (at - options.trap_stubs < 256 * 16 && at % 16 == 0)
        return (int)((at - options.trap_stubs) / 16);
    return -1;
}

// QEMU 7.2 reports no load to a callback for loads, and each to a callback for
// stores: all callbacks are for both, and look at `info`.
static void on_access(struct qemu_plugin_insn *insn, mem_callback *callback,
                      void *data)
{
    qemu_plugin_register_vcpu_mem_cb(insn, callback, NO_REGISTERS,
                                     MEM_READ | MEM_WRITE, data);
}

static void observe(struct qemu_plugin_insn *insn, struct block *b,
                    const u8 *bytes, size_t size, u32 at)
{
    u32 stored = 0;
    if (size > 4)
        memcpy(&stored, bytes + size - 4, 4);
    bool fork = stored == options.fork_child_begin;
    if (bytes[0] == 0xc7 && (fork || stored == options.thread_begin))
        on_access(insn, born, fork ? b : NULL);
    // movl %eax, LEDGER_USER_SINCE(%ebx)
    if (at >= options.to_user && at < options.trap_return && bytes[0] == 0x89 &&
        (bytes[1] & 0x38) == 0 && size == 3)
        on_access(insn, stored_time, NULL);
}

// QEMU 7.2 also reports an instruction that crosses a page, with its bytes in
// the first page, but leaves it to the next block, unless the block begins with
// it.
static size_t insns_of(const struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb);
    const struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, n - 1);
    u8 bytes[INSN_MAX];
    size_t size = plugin_bytes(last, bytes);
    bool near_end =
        (qemu_plugin_insn_vaddr(last) & 4095) + sizeof(bytes) > 4096;
    return n > 1 && near_end && !x86_is_complete(bytes, size) ? n - 1 : n;
}

#if API_VERSION >= 2 // (whose inline operations make QEMU 11 fail on SMP)
static void begin_segment(unsigned cpu, void *data)
{
    (void)cpu, (void)data;
    segments_begun++;
}

static void count_segment(struct qemu_plugin_insn *first)
{
    qemu_plugin_register_vcpu_insn_exec_cb(first, begin_segment, NO_REGISTERS,
                                           NULL);
}
#else
static void count_segment(struct qemu_plugin_insn *first)
{
    qemu_plugin_register_vcpu_insn_exec_inline(first, INLINE_ADD,
                                               &segments_begun, 1);
}
#endif

static void translate(struct qemu_plugin_tb *tb)
{
    static u8 bytes[512 * INSN_MAX];
    static u32 ends[512], ats[512];
    size_t n = insns_of(tb);
    u32 at = (u32)qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
    u32 size = 0, segments = 0;
    bool last = true, modifies = false, marks_end = false;
    enum x86_kind kind = X86_OTHER;
    struct qemu_plugin_insn *starts[512];
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        ats[i] = (u32)qemu_plugin_insn_vaddr(insn);
        size_t length = plugin_bytes(insn, bytes + size);
        if (last)
            starts[segments++] = insn;
        last = x86_may_fault(bytes + size, length);
        ends[segments - 1] = (u32)i + 1;
        kind = x86_kind(bytes + size, length);
        modifies = x86_modifies(bytes + size, length);
        marks_end |= x86_tests(bytes + size, length, END_MARK);
        size += (u32)length;
    }
    bool is_new;
    struct block *b = block_of(at, bytes, size, (u32)n, &is_new);
    if (is_new) {
        b->segments = segments;
        b->seals = last;
        b->modifies = modifies;
        b->marks_end = marks_end && at < options.kernel;
        b->segment_end = enough(malloc(segments * 4));
        memcpy(b->segment_end, ends, segments * 4);
        b->insn_at = enough(malloc(n * 4));
        memcpy(b->insn_at, ats, n * 4);
        b->entry = at >= options.kernel ? vector_of(at) : -1;
        b->end = kind == X86_CALL    ? END_CALL
                 : kind == X86_RET   ? END_RET
                 : kind == X86_IRET  ? END_IRET
                 : kind == X86_HLT   ? END_HLT
                 : kind == X86_RDTSC ? END_RDTSC
                                     : END_OTHER;
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, execute, NO_REGISTERS, b);
    for (u32 i = 1; i < segments; i++)
        count_segment(starts[i]);
    struct qemu_plugin_insn *end = qemu_plugin_tb_get_insn(tb, n - 1);
    if (last && b->end != END_CALL && b->end != END_RET && b->end != END_IRET)
        on_access(end, accessed, b);
    if (b->end == END_CALL)
        on_access(end, called, b);
    if (b->end == END_RET)
        on_access(end, returned, b);
    if (b->end == END_IRET)
        on_access(end, iret_read, b);
    if (at < options.kernel)
        return;
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        u8 one[INSN_MAX];
        size_t length = plugin_bytes(insn, one);
        observe(insn, b, one, length, ats[i]);
    }
}

static void ended(uint64_t plugin, void *data)
{
    (void)plugin, (void)data;
    if (!stopped)
        stop();
}

// --- options ----------------------------------------------------------------

static const struct {
    const char *name;
    u32 *value;
} numbers[] = {
#define NUMBER(name)         \
    {                        \
#name, &options.name \
    }
    NUMBER(trap_stubs),      NUMBER(syscall_entry_point),
    NUMBER(nmi_entry_point), NUMBER(double_fault_entry_point),
    NUMBER(thread_begin),    NUMBER(fork_child_begin),
    NUMBER(arch_exec),       NUMBER(sigframe_push),
    NUMBER(sigframe_pop),    NUMBER(to_user),
    NUMBER(trap_return),     NUMBER(kernel),
};

static bool take_option(const char *argument)
{
    const char *equals = strchr(argument, '=');
    if (!equals)
        return false;
    size_t length = (size_t)(equals - argument);
    if (length == 3 && !strncmp(argument, "out", 3))
        return options.out = strdup(equals + 1), true;
    if (length == 6 && !strncmp(argument, "memory", 6))
        return options.memory = strdup(equals + 1), true;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        if (strlen(numbers[i].name) == length &&
            !strncmp(argument, numbers[i].name, length))
            return *numbers[i].value = (u32)strtoul(equals + 1, NULL, 16), true;
    }
    return false;
}

PLUGIN_EXPORT int qemu_plugin_install(uint64_t plugin, const void *info,
                                      int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (!take_option(argv[i])) {
            fprintf(stderr, "oracle: unknown option %s\n", argv[i]);
            return 1;
        }
    }
    if (!options.out)
        return 0; // tools/build/qemu-plugin asks only whether QEMU loads it
    plugin_on_translation(plugin);
    qemu_plugin_register_atexit_cb(plugin, ended, NULL);
    return 0;
}
