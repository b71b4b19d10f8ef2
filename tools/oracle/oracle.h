// The oracle: a QEMU plugin that counts each executed instruction, by the path
// of calls that leads to it (docs/exact.md). The guest is a Strobe kernel on
// CPUs that take turns (-icount), so this runs on one host thread.
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
#pragma once

#include "tools/qemu/api.h"
#include "tools/qemu/x86.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
typedef uint8_t u8;

#define CPU_MAX 255
#define SYSCALL_VECTOR 0x80
#define NMI_VECTOR 2

struct options {
    // Addresses in the kernel.
    u32 trap_stubs, syscall_entry_point, nmi_entry_point;
    u32 double_fault_entry_point, thread_begin, fork_child_begin;
    u32 arch_exec, sigframe_push, sigframe_pop, to_user, trap_return;
    u32 kernel; // its first
    const char *out, *memory;
    u32 paths; // limit of their number
    u32 flat;  // boolean: no paths
};
extern struct options options;

// Ends QEMU with a message.
_Noreturn void fail(const char *why);
// Returns `p`; lack of memory ends QEMU.
void *enough(void *p);

// --- tree.c: paths ----------------------------------------------------------

enum node_kind { NODE_ROOT, NODE_CALL, NODE_ENTRY, NODE_SIGNAL };

// A path: its last frame was entered from the parent's.
struct node {
    u32 id, kind;      // each path has an id of its own
    u32 index;         // in the file
    u32 depth;         // of a root: 0
    u32 used;          // fold.c
    struct node *into; // likewise
    u32 site;   // of NODE_CALL: return address; of others: the instruction
    u32 vector; // of NODE_ENTRY
    struct node *parent;
    struct node *next; // of the same list or hash
    // The first paths and tallies below it are in lists, which are faster than
    // the hash tables: most have few, and those of a new process are new.
    struct node *children;
    struct tally *tallies;
    u32 child_count, tally_count; // in the lists: FEW at most
    const char *name;             // of NODE_ROOT
    struct node *idle; // of a root: the root of the idle time after it; of that
                       // one: the root before it
    u64 halted_ns;     // of a root of idle time
    u32 number;        // of NODE_ROOT
};

#define FEW 8

extern struct node **all_nodes; // a path after its parent
extern u32 node_count;

struct node *root(const char *name, u32 number);
// Returns the path below `parent` that the arguments describe.
struct node *child(struct node *parent, enum node_kind kind, u32 site,
                   u32 vector);
// Returns the outermost caller.
struct node *root_of(struct node *n);
// Returns the path of idle time that begins where `n` waits: the same path
// below a root of its own.
struct node *idle_after(struct node *n);
// Removes the paths that have `into`.
void nodes_remove(void);

// --- blocks.c: blocks, and how often they were executed ---------------------

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
    // Flat counts: how often it began; the segments after its first that the
    // last time began and, times FLAT_ACCESS, the accesses of its last
    // instruction; and what that is at least if it ran to its end.
    u64 begun, progress, whole;
    bool reads_clock, pauses; // execute_flat has more to do
    u32 *segment_end;         // instructions up to the end of each segment
    u32 *insn_at;             // addresses
    u8 bytes[];
};

// Executions, by node and block. `cut` counts those that ended early: by the
// number of segments begun, and whether the last instruction of them had
// executed.
struct tally {
    struct node *node;
    struct block *block;
    u64 count;
    struct cut *cuts;
    struct tally *next; // of the same node
};
struct cut {
    struct cut *next;
    u32 insns; // executed
    u64 count;
};

extern struct block **all_blocks; // by id
extern u32 block_count;

// All tallies, in the order in which they were made.
#define TALLY_CHUNK 4096
struct tallies {
    struct tally **chunks; // of TALLY_CHUNK tallies
    u64 count, chunk_room;
};
extern struct tallies tallies;

// Returns the block with these bytes; *is_new if only they are set.
struct block *block_of(u32 at, const u8 *bytes, u32 size, u32 insns,
                       bool *is_new);
struct tally *tally_of(struct node *n, struct block *b);
static inline struct tally *tally_at(const struct tallies *all, u64 i)
{
    return &all->chunks[i / TALLY_CHUNK][i % TALLY_CHUNK];
}
// Returns the count of the executions that ended after `insns`.
u64 *tally_cut(struct tally *t, u32 insns);
// Moves all counts to their path's `into`, if it has one. All tallies change
// their addresses.
void tallies_fold(void);

// --- threads.c: threads and their frames ------------------------------------

struct frame {
    // Stack address of the return address; 0 if not known yet. Of NODE_ENTRY:
    // the instruction that was interrupted.
    u32 slot;
    u8 kind;
    bool user;           // NODE_ENTRY: in user mode
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
    u32 sleeps_at;        // slot from which it is resumed
    struct thread *next;  // of the same hash
    struct thread *older; // in the list of all
};

struct birth { // a thread that has not run: its slot and creator
    u32 slot;
    struct frames user;
    struct node *user_node;
    bool fork;
    struct birth *next;
};

struct cpu {
    struct thread *thread;
    struct thread *first; // becomes the idle thread
    struct block *block;  // the last one begun
    u64 segments;         // begun of it
    bool in_user, in_firmware;
    u32 slot;                // that its last instruction accessed, or 0
    u32 reads;               // of IRET's frame
    struct tally *tally;     // of `block`
    struct node *tally_node; // fold.c
    u64 rdtsc_at;   // instructions executed at RDTSC in to_user; 0: unknown
    bool unsettled; // its last block may have ended early
};

extern struct cpu cpus[CPU_MAX];

struct thread *thread_new(const char *name);
// The present thread's CALL in user mode has stored its return address `site`
// at `slot`, or RET has read it.
void user_call(struct thread *t, u32 slot, u32 site);
void user_return(struct thread *t, u32 slot);
// The same in the kernel, where RET may switch threads.
void kernel_call(struct thread *t, u32 slot, u32 site);
void kernel_return(struct cpu *c, u32 slot);
// The present thread has stored a new thread's first return address.
void thread_born(struct thread *t, u32 slot, bool fork);
// Replaces paths that have `into`, in all threads.
void threads_fold(void);
// The CPU enters the kernel by a vector, at instruction `site`.
void enter(struct cpu *c, u32 vector, u32 site);
// The CPU has executed IRET at `site`. Returns the instruction to which the
// next entry belongs if nothing else is executed before.
u32 leave(struct cpu *c, u32 site);

// --- clock.c: comparisons with the kernel's clock ---------------------------

// The kernel stores the TSC, which counts instructions, on each way to user
// mode. Between two stores it must have grown by the instructions counted,
// unless all CPUs have halted.
struct clock_check {
    const u8 *memory;
    u64 size, value, at, now;
    u32 low;
    bool known, halted, read;
    u64 readings, equal, halts, idle;
    s64 wrong; // sum of differences without a halt
    u64 wrongs;
    struct node *halter; // root of the path that halted last
};
extern struct clock_check clock_check;

// A callback: the kernel has stored the TSC.
void stored_time(unsigned cpu, u32 info, u64 address, void *data);
void check_clock(void);

// --- execute.c: callbacks while the guest runs ------------------------------

extern u64 total;           // instructions executed
extern u64 segments_begun;  // of the last block
extern u64 flush_at;        // when `total` is this, the result is written
extern struct cpu *running; // the CPU whose turn it is
extern u32 unsettled;       // number of other CPUs that are `unsettled`

// Whether the block is of the kernel, at its final address.
static inline bool is_kernel_code(const struct block *b)
{
    return b->at - options.kernel < 64u << 20;
}
void take_turn(struct cpu *c);
// What the previous block of this CPU did, now that the next is known. Returns
// whether it ran to its end.
bool settle(struct cpu *c, const struct block *next);
// Writes the result: not the last one, and the last one.
void count_flush(void);
void count_stop(void);

void execute(unsigned index, void *block);
void called(unsigned cpu, u32 info, u64 address, void *block);
void returned(unsigned cpu, u32 info, u64 address, void *block);
void iret_read(unsigned cpu, u32 info, u64 address, void *block);
void accessed(unsigned cpu, u32 info, u64 address, void *block);
// `block` is NULL for threads that do not continue their creator's path.
void born(unsigned cpu, u32 info, u64 address, void *block);
// QEMU ends.
void ended(uint64_t plugin, void *data);

// --- flat.c: counts without paths -------------------------------------------

#define FLAT_ACCESS ((u64)1 << 32)

void flat_init(struct block *b);
void execute_flat(unsigned index, void *block);
// For a QEMU whose plugins cannot count without a call.
void flat_segment(unsigned cpu, void *block);
void flat_access(unsigned cpu, u32 info, u64 address, void *block);
void ended_flat(uint64_t plugin, void *data);

// --- fold.c: a limit of the memory ------------------------------------------

extern u32 fold_epoch; // number of folds
extern u64 folded;     // paths that were folded

// Whether there are too many paths or tallies.
bool fold_is_due(void);
// Counts paths that were not entered since the last call in their callers, and
// then the deepest, until half of the limit is free.
void fold(void);

// --- result.c ---------------------------------------------------------------

// Writes the file.
void result_write(bool ended);
