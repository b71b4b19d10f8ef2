// The kernel box: how a task is profiled (and, later, traced) by another one.
//
//     phone = kbox_connect(task_id)       a descriptor; close() hangs up
//     ipc_call(phone, &call) -> 0         sends; call.id identifies the answer
//     ipc_wait(phone, &answer, timeout)   waits for the next answer
//
// The kernel serves this box: answers come as from any other one. arg[0] of a
// call IPC_M_SPROFILE_ALL is the command.
// Methods and arguments follow HelenOS (M.S. thesis of S. Kozina, section 6.2).
#pragma once

#include <strobe/ipc.h>

#define SYS_kbox_connect 1020

enum sprofile_command {
    // arg[1] = address of struct sprofile_options in the caller.
    // Answer: retval 0; the source really used is told by struct sprofile_info.
    // -EPERM: it is not the caller's own task, or (SYSTEM_BEGIN) the caller may
    // not profile everything: it is not root, nor a user of profile_users=.
    SPROFILE_M_TASK_BEGIN = 1,
    SPROFILE_M_SYSTEM_BEGIN = 2,
    // Ends the session. Answered when the last interrupt has left it.
    SPROFILE_M_END = 3,
    // arg[1] = 1 pauses, 0 resumes.
    SPROFILE_M_PAUSE = 4,
    // arg[1] = buffer, arg[2] = its size in bytes. Answered with the number of
    // bytes of whole records stored there: when a quarter of a ring is full,
    // after a time-out (then possibly 0), or when the task has ended and the
    // last records are read. -ESHUTDOWN once that has been said.
    // With arg[3] = SPROFILE_READ_SPANS nothing is copied: the buffer, which
    // must have room for one of each CPU and one more, gets struct
    // sprofile_span, and the answer is their bytes. What they tell of may be
    // read until the next DATA_READ. -EINVAL: the rings are not mapped.
    SPROFILE_M_DATA_READ = 5,
    // arg[1] = address of struct sprofile_info, filled at once.
    SPROFILE_M_INFO = 6,
    // Maps the rings into the caller, who may only read them. They stay until
    // they are unmapped, also after END. -ENOMEM.
    SPROFILE_M_MAP = 7,
    // Counts what happens to the task, without samples: a session of its own
    // kind, ended by SPROFILE_M_END. arg[1] = address of struct
    // sprofile_count_options. Answer: retval 0; what cannot be counted is told
    // by COUNT_READ.
    SPROFILE_M_COUNT_BEGIN = 8,
    // arg[1] = address of struct sprofile_counts, filled at once: what the
    // events have come to until now, also when the task has ended.
    SPROFILE_M_COUNT_READ = 9,
};

// Whole records in a mapped ring, in one piece.
struct sprofile_span {
    uint32_t address, size;
};
#define SPROFILE_READ_SPANS 1

#define SPROFILE_SOURCE_NAME 16
#define SPROFILE_EVENT_NAME 32
#define SPROFILE_FRAMES_MAX 127 // of each chain
#define SPROFILE_STACK_WORDS 12
#define SPROFILE_DEEP_WORDS 2048 // with SPROFILE_O_DEEP
#define SPROFILE_SIGNALS_MAX 4
// At most, of the code that a signal handler returns to, which ends the signal:
// popl %eax; movl $119, %eax; int $0x80, and the place behind it.
#define SPROFILE_RESTORER_BYTES 9
#define SPROFILE_PATH_MAX 256
#define SPROFILE_BUILD_ID_MAX 20

#define SPROFILE_O_FROM_EXEC 1 // paused until the task's next execve succeeds
// Tasks that the target starts are targets, too; when sampling begins also
// those that it has started, but for the caller.
#define SPROFILE_O_CHILDREN 2
#define SPROFILE_O_STACKS 4 // samples have call chains
#define SPROFILE_O_RANDOM 8 // periods vary by half, uniformly
// With SPROFILE_O_STACKS: samples have 8 KiB of the user's stack, so that call
// frame information can be followed where there are no frame pointers.
#define SPROFILE_O_DEEP 16

struct sprofile_options {
    uint32_t size;       // sizeof(struct sprofile_options)
    uint32_t flags;      // SPROFILE_O_...
    uint32_t rate_hz;    // wanted; 0: 1000
    uint32_t ring_bytes; // per CPU, 0: the kernel chooses
    uint64_t period;     // in events, for a source that counts; 0: by rate_hz
    char source[SPROFILE_SOURCE_NAME]; // "" : the best
    char event[SPROFILE_EVENT_NAME];   // for a source that counts; "": cycles
};

// The honest header. Every tick that was due is in exactly one of taken,
// missed, throttled, others, also those that a CPU was too late for to take;
// every sample taken in exactly one of user, kernel, irq, idle; taken == stored
// + lost.
struct sprofile_info {
    char source[SPROFILE_SOURCE_NAME];
    char event[SPROFILE_EVENT_NAME]; // what the period counts; "" nanoseconds
    uint32_t rate_hz;                // really set; 0: by period
    uint32_t asked_hz;
    uint32_t cpus;   // sampled
    uint32_t tasks;  // targets that live; of a task session
    uint32_t random; // 1: the periods vary (SPROFILE_O_RANDOM and able to)
    // 1: who profiles may not see the kernel's addresses. A sample in the
    // kernel has a chain of one entry there, 0.
    uint32_t hides_kernel;
    uint64_t period;
    // Ticks due on all CPUs while a target was running, or held up by a handler
    // on top of it: by the rate and the ledger's time. Where `random` is set
    // and the source counts its ticks: of as many as have come due until now
    // the targets' share of that time; in a system session all of them. Of
    // cycles that are counted, without the time that is not (a halted CPU's,
    // the kernel's with :u). By period, and of other events (`period` is 0 when
    // they follow a rate): 0, for nobody knows.
    uint64_t expected;
    uint64_t taken; // samples that hit a target
    uint64_t lost;  // taken, but no room in the ring
    uint64_t user, kernel, irq, idle;
    uint64_t irqs_off;   // of those taken: interrupts were off there
    uint64_t others;     // ticks that hit something else (not a target)
    uint64_t missed;     // ticks that came late: a sample stands for several
    uint64_t throttled;  // ticks not looked at: sampling took too much
    uint64_t unreadable; // chains that ended at memory that is not there
    uint64_t tasks_lost; // SPROFILE_R_TASK that found no room
    // TSC cycles that the interrupts took of all CPUs, from entry to exit;
    // where sessions share them, this one's part.
    uint64_t cycles;
    uint64_t tsc_hz;
    uint64_t elapsed_ns; // since BEGIN, without pauses
    // What the kernel argument sampler= names, where it could not be had and
    // `source` was taken instead; else "".
    char instead_of[SPROFILE_SOURCE_NAME];
    uint64_t tool_cycles; // TSC cycles of the task that profiles, all CPUs
    uint64_t interrupts;  // that `cycles` are those of
};

#define SPROFILE_COUNTS_MAX 16

// An event is one of the kernel's (task-clock, user-time, kernel-time,
// context-switches, cpu-migrations, page-faults, system-calls), or one of the
// performance counters' (docs/counters.md).
struct sprofile_count_options {
    uint32_t size;  // sizeof(struct sprofile_count_options)
    uint32_t flags; // SPROFILE_O_FROM_EXEC, SPROFILE_O_CHILDREN
    uint32_t events;
    char event[SPROFILE_COUNTS_MAX][SPROFILE_EVENT_NAME];
};

enum sprofile_count_kind {
    SPROFILE_COUNT_EVENTS = 1,
    SPROFILE_COUNT_NS = 2,
    SPROFILE_COUNT_NOT = 3,     // it cannot be counted here: `why`
    SPROFILE_COUNT_UNKNOWN = 4, // there is no such event
};

// More events than counters take turns: value * enabled / running estimates
// what a counter of its own would have shown; `running` 0: nothing is known.
struct sprofile_count {
    uint32_t kind; // enum sprofile_count_kind
    uint32_t reserved;
    uint64_t value;
    uint64_t enabled, running; // TSC cycles: wanted for; had a counter for
    char why[64];
};

struct sprofile_counts {
    uint32_t events;
    uint32_t tasks; // targets that live
    uint64_t elapsed_ns, tsc_hz;
    struct sprofile_count count[SPROFILE_COUNTS_MAX];
};

// The record stream: 8-byte aligned records, each with this head. Records of
// one CPU come in the order of time; SPROFILE_R_TASK are ahead of the samples
// that were taken after them.
struct sprofile_record {
    uint16_t type; // SPROFILE_R_...
    uint16_t size; // bytes, a multiple of 8, head included
    uint16_t cpu;
    uint16_t flags; // SPROFILE_F_...
    uint64_t time;  // TSC
};

#define SPROFILE_R_SAMPLE 1
#define SPROFILE_R_TASK 2
#define SPROFILE_R_LOST 3
#define SPROFILE_R_PAD 4 // of no meaning: where a ring ends

// What was interrupted: user code if none of the first three is set.
#define SPROFILE_F_KERNEL 1
#define SPROFILE_F_IDLE 2
#define SPROFILE_F_IRQ 4 // the kernel, in an interrupt handler
#define SPROFILE_F_IRQS_OFF 8
#define SPROFILE_F_KERNEL_CUT 16 // the kernel's chain goes on
// Of the user's chain:
#define SPROFILE_F_USER_CUT 32 // it goes on in memory that cannot be read
// ebp was no frame pointer: between the first entry and the others callers are
// missing, and the others are from a frame that was guessed at.
#define SPROFILE_F_USER_GAP 64
#define SPROFILE_F_USER_DEEP 128 // it goes on beyond SPROFILE_FRAMES_MAX
#define SPROFILE_F_USER_LOST 256 // its last frame's caller makes no sense
// Signal handlers are under way; behind the chain lie as many
// struct sprofile_signal as there is room for.
#define SPROFILE_F_USER_SIGNALS 512

// The chains are as <arch/unwind.h> says: entries but the first of a chain are
// looked up by their address minus one. A sample of user code has no kernel
// chain; without SPROFILE_O_STACKS it has one entry in all.
struct sprofile_sample {
    struct sprofile_record head;
    uint32_t task;
    uint32_t thread;
    uint64_t period;      // what it stands for: ns, or events
    uint8_t kernel_depth; // entries of pc[] that are the kernel's chain
    uint8_t user_depth;   // and, behind the next ones, the user's
    uint16_t stack_words; // between the two; 0 or: the user's esp and ebp; what
                          // lies on the stack from esp on; and with
                          // SPROFILE_F_USER_GAP the frame that the chain was
                          // followed from (0: none), else that is ebp
    uint32_t pc[];
};

// A signal frame on the user's stack, and what its handler had interrupted.
// The innermost comes first.
struct sprofile_signal {
    uint32_t frame; // where the handler's return address lies,
    uint32_t back;  // and that address
    uint32_t eip, esp, ebp;
    uint32_t from;        // the frame that the chain goes on from: ebp, as a
                          // rule
    uint32_t stack_words; // that could be read from esp on
    uint32_t stack[SPROFILE_STACK_WORDS];
};

// What becomes of the targets; in a system session of all tasks. What there was
// when the session began, system.tasks tells.
enum sprofile_task_kind {
    SPROFILE_T_FORKED = 1, // runs what its parent ran
    SPROFILE_T_EXECED,
    SPROFILE_T_ENDED,
};
struct sprofile_task {
    struct sprofile_record head;
    uint32_t task, parent;
    uint16_t kind; // SPROFILE_T_...
    uint16_t build_id_size;
    uint8_t build_id[SPROFILE_BUILD_ID_MAX];
    char name[16];
    char path[]; // of the program, NUL-terminated; "": a kernel task, or no end
};

// Its head's flag. The last four bytes of the record, behind the path, are how
// far above the addresses in its file the program lies: position-independent
// ones do.
#define SPROFILE_F_LOAD_BIAS 1024

static inline uint32_t sprofile_load_bias(const struct sprofile_task *t)
{
    uint32_t bias = 0;
    if (t->head.flags & SPROFILE_F_LOAD_BIAS)
        __builtin_memcpy(&bias, (const char *)t + t->head.size - sizeof(bias),
                         sizeof(bias));
    return bias;
}

// That many samples of this CPU found no room before the next one.
struct sprofile_lost {
    struct sprofile_record head;
    uint64_t count;
};
