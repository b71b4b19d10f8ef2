// The kernel box: how one task profiles (and, later, traces) another one.
//
//     phone = kbox_connect(task_id)       a descriptor; close() hangs up
//     ipc_call(phone, &call) -> 0         sends; call.id identifies the answer
//     ipc_wait(phone, &answer, timeout)   waits for the next answer
//
// The kernel serves this box; it answers as any other box does. arg[0] of a
// call IPC_M_SPROFILE_ALL is the command. Methods and arguments follow HelenOS
// (M.S. thesis of S. Kozina, section 6.2).
#pragma once

#include <strobe/core_clock.h>
#include <strobe/ipc.h>

#define SYS_kbox_connect 1020

enum sprofile_command {
    // arg[1] = address of struct sprofile_options in the caller. Answer: retval
    // 0; struct sprofile_info has the source that is used. -EPERM: the task is
    // not the caller's own, or (SYSTEM_BEGIN) the caller may not profile
    // everything: it is neither root nor a user of profile_users=.
    SPROFILE_M_TASK_BEGIN = 1,
    SPROFILE_M_SYSTEM_BEGIN = 2,
    // Ends the session. Answered when the last interrupt has left it.
    SPROFILE_M_END = 3,
    // arg[1] = 1 pauses, 0 resumes.
    SPROFILE_M_PAUSE = 4,
    // arg[1] = buffer, arg[2] = its size in bytes. Answered with the number of
    // bytes of whole records stored there: when a quarter of a ring is full,
    // after a timeout (then possibly 0), or when the task has ended and the
    // last records are read. After that -ESHUTDOWN. With arg[3] =
    // SPROFILE_READ_SPANS nothing is copied: the buffer, which must have room
    // for one span of each CPU and one more, gets struct sprofile_span, and the
    // answer is their size in bytes. The records in the spans may be read until
    // the next DATA_READ. -EINVAL: the rings are not mapped.
    SPROFILE_M_DATA_READ = 5,
    // arg[1] = address of struct sprofile_info, filled at once; of a trace of
    // events, struct trace_info.
    SPROFILE_M_INFO = 6,
    // Maps the rings into the caller, read-only. They stay until they are
    // unmapped, also after END. -ENOMEM.
    SPROFILE_M_MAP = 7,
    // Counts events of the task, without samples: a session of its own kind,
    // ended by SPROFILE_M_END. arg[1] = address of struct
    // sprofile_count_options. Answer: retval 0; COUNT_READ reports events that
    // cannot be counted.
    SPROFILE_M_COUNT_BEGIN = 8,
    // arg[1] = address of struct sprofile_counts, filled at once: the counts
    // until now, also when the task has ended.
    SPROFILE_M_COUNT_READ = 9,
    // Call tracing of the kernel: <strobe/calls.h>. BEGIN: arg[1] = address of
    // struct calls_options; PAUSE and END as above. The others are answered on
    // every phone.
    SPROFILE_M_CALLS_BEGIN = 10,
    SPROFILE_M_CALLS_INFO = 11,
    SPROFILE_M_CALLS_READ = 12,
    SPROFILE_M_CALLS_RESET = 13,
    // A trace of events: <strobe/trace.h>. arg[1] = address of struct
    // trace_options. Then DATA_READ, PAUSE, INFO and END.
    SPROFILE_M_TRACE_BEGIN = 14,
    // arg[1] = buffer, arg[2] = its size. Stores what a flight has now, as
    // DATA_READ does: the tasks' events, which are read thereby, then copies
    // of the rings. The flight goes on. Answer: bytes. -EINVAL: it is no
    // flight, or has been paused; -ENOSPC: the buffer must have room for all
    // rings, a struct trace_block each, and 4096 bytes.
    SPROFILE_M_TRACE_COPY = 15,
    // Names of functions: <strobe/calls.h>. Answered on every phone.
    SPROFILE_M_CALLS_NAMES = 16,
};

// Whole records in a mapped ring, contiguous.
struct sprofile_span {
    uint32_t address, size;
};
#define SPROFILE_READ_SPANS 1

#define SPROFILE_SOURCE_NAME 16
#define SPROFILE_EVENT_NAME 32
// The source whose events are trace points: "group/name", or with a field whose
// units are counted, "group/name:field".
#define SPROFILE_POINT_SOURCE "trace"
#define SPROFILE_FRAMES_MAX 127 // of each chain
#define SPROFILE_STACK_WORDS 12
#define SPROFILE_DEEP_BYTES 8192 // of the stack, with SPROFILE_O_DEEP
#define SPROFILE_DEEP_LEAST 64
#define SPROFILE_DEEP_MOST 61440 // a record's size has 16 bits
#define SPROFILE_SIGNALS_MAX 4
// Maximum length of the code to which a signal handler returns, which calls
// sigreturn: popl %eax; movl $119, %eax; int $0x80, and the address after it.
#define SPROFILE_RESTORER_BYTES 9
#define SPROFILE_PATH_MAX 256
#define SPROFILE_BUILD_ID_MAX 20

#define SPROFILE_O_FROM_EXEC 1 // paused until the task's next execve succeeds
// Tasks that the target starts become targets, too; when sampling begins also
// those that it has started before, except for the caller.
#define SPROFILE_O_CHILDREN 2
#define SPROFILE_O_STACKS 4 // samples have call chains
#define SPROFILE_O_RANDOM 8 // periods vary, exponentially
// With SPROFILE_O_STACKS: samples have `stack_bytes` of the user's stack, so
// that call frame information can be used where there are no frame pointers.
#define SPROFILE_O_DEEP 16
// With SPROFILE_O_STACKS, without DEEP: the user's callers are those that the
// CPU has recorded (arch/lbr.h). -EOPNOTSUPP: system.profile.callers has the
// reason.
#define SPROFILE_O_LBR 32
// With SPROFILE_O_RANDOM: -ERANGE where the distances would be fixed.
#define SPROFILE_O_NO_FIXED 64

struct sprofile_options {
    uint32_t size;       // sizeof(struct sprofile_options)
    uint32_t flags;      // SPROFILE_O_...
    uint32_t rate_hz;    // requested; 0: 1000
    uint32_t ring_bytes; // per CPU, 0: the kernel chooses
    uint64_t period;     // in events, for an event source; 0: by rate_hz
    char source[SPROFILE_SOURCE_NAME]; // "" : the best
    char event[SPROFILE_EVENT_NAME];   // for an event source; "": cycles
    // For SPROFILE_O_DEEP: a multiple of 8; 0: SPROFILE_DEEP_BYTES.
    uint32_t stack_bytes;
    uint32_t reserved; // the size is the same on 32 and 64 bits
};

static inline uint32_t sprofile_stack_bytes(const struct sprofile_options *o)
{
    return o->stack_bytes != 0 ? o->stack_bytes : SPROFILE_DEEP_BYTES;
}

// The accounting of a session. Every tick that was due, including those that a
// CPU was too late to take, is in exactly one of taken, missed, throttled,
// in_sampling, others; every taken sample is in exactly one of user, kernel,
// irq, idle; taken == stored + lost.
struct sprofile_info {
    char source[SPROFILE_SOURCE_NAME];
    char event[SPROFILE_EVENT_NAME]; // what the period counts; "" nanoseconds
    uint32_t rate_hz;                // the actual rate; 0: by period
    uint32_t asked_hz;
    uint32_t cpus;   // sampled
    uint32_t tasks;  // living targets; of a task session
    uint32_t random; // 1: the periods vary (SPROFILE_O_RANDOM and able to)
    // 1: the profiling user may not see kernel addresses. A sample in the
    // kernel then has a kernel chain of one entry, 0.
    uint32_t hides_kernel;
    uint64_t period;
    // Ticks due on all CPUs while a target was running, or was delayed by a
    // handler on top of it: computed from the rate and the ledger's time. If
    // `random` is set and the source counts its ticks: the ticks due until now,
    // times the targets' share of that time; in a system session all of them.
    // For counted cycles, time in which they are not counted (a halted CPU's,
    // the kernel's with :u) is excluded. By period, and for other events
    // (`period` is 0 when they follow a rate): 0, not known.
    uint64_t expected;
    uint64_t taken; // samples that hit a target
    uint64_t lost;  // taken, but no room in the ring
    uint64_t user, kernel, irq, idle;
    uint64_t irqs_off; // of those taken: interrupts were off there
    uint64_t others;   // ticks outside the target
    uint64_t missed;   // late ticks: one sample represents several
    // Ticks not sampled: sampling took too much time. They are drawn by lot;
    // samples taken meanwhile have a longer period instead.
    uint64_t throttled;
    uint64_t unreadable; // chains that ended at unmapped memory
    uint64_t tasks_lost; // SPROFILE_R_TASK for which there was no room
    // TSC cycles that the interrupts took on all CPUs, from entry to exit; if
    // sessions share them, this session's part.
    uint64_t cycles;
    uint64_t tsc_hz;
    uint64_t elapsed_ns; // since BEGIN, without pauses
    // The source that the kernel argument sampler= names, if it was not
    // available and `source` was used instead; else "".
    char instead_of[SPROFILE_SOURCE_NAME];
    uint64_t tool_cycles; // TSC cycles of the profiling task, on all CPUs
    uint64_t interrupts;  // the number of interrupts in `cycles`
    // Its cycles: of all CPUs since BEGIN, without pauses.
    struct strobe_core_clock clock;
    // TSC cycles of the targets by the ledger, in the modes of the samples. In
    // a system session: of all CPUs, without the profiling task and the
    // interrupts that take samples. In a task session `irq` and `idle` are 0.
    uint64_t user_cycles, kernel_cycles, irq_cycles, idle_cycles;
    uint64_t times_lost;  // SPROFILE_R_TIMES for which there was no room
    uint64_t in_sampling; // ticks not sampled: due in a sampling interrupt
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
    SPROFILE_COUNT_NOT = 3,     // it cannot be counted here: see `why`
    SPROFILE_COUNT_UNKNOWN = 4, // there is no such event
};

// The turns of an event go to these parts in rotation.
#define SPROFILE_PARTS 17
struct sprofile_part {
    uint64_t value, running;
};

// If there are more events than counters, they are multiplexed: value * enabled
// / running estimates the full count; `running` 0: unknown. How much the turns
// differ is seen from the parts, whose sums are `value` and `running`.
struct sprofile_count {
    uint32_t kind; // enum sprofile_count_kind
    uint32_t reserved;
    uint64_t value;
    uint64_t enabled, running; // TSC cycles: requested for; had a counter for
    char why[64];
    struct sprofile_part part[SPROFILE_PARTS]; // of the performance counters'
};

struct sprofile_counts {
    uint32_t events;
    uint32_t tasks; // living targets
    // Counters of each CPU, general and fixed-function ones; of the CPU that
    // has the fewest. 0: no event needs them.
    uint32_t general, fixed;
    uint64_t elapsed_ns, tsc_hz;
    struct sprofile_count count[SPROFILE_COUNTS_MAX];
    // Its cycles: of all CPUs since the counts began.
    struct strobe_core_clock clock;
};

// The record stream: 8-byte aligned records, each with this head. Records of
// one CPU are in the order of time; SPROFILE_R_TASK records are before the
// samples taken after them.
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
#define SPROFILE_R_PAD 4 // padding at the end of a ring
#define SPROFILE_R_TIMES 5

// The interrupted code: user code if none of the first three is set.
#define SPROFILE_F_KERNEL 1
#define SPROFILE_F_IDLE 2
#define SPROFILE_F_IRQ 4 // the kernel, in an interrupt handler
#define SPROFILE_F_IRQS_OFF 8
#define SPROFILE_F_KERNEL_CUT 16 // the kernel's chain is truncated
// Of the user's chain:
#define SPROFILE_F_USER_CUT 32 // it continues in unreadable memory
// ebp was not a frame pointer: callers are missing between the first entry and
// the rest, which follow from a guessed frame.
#define SPROFILE_F_USER_GAP 64
#define SPROFILE_F_USER_DEEP 128 // it continues beyond SPROFILE_FRAMES_MAX
#define SPROFILE_F_USER_LOST 256 // the caller in its last frame is not valid
// Signal handlers are running; after the chain there are as many struct
// sprofile_signal as there is room for.
#define SPROFILE_F_USER_SIGNALS 512
// The callers were recorded by the CPU: the entries after the first are
// addresses within call instructions, plus 1. The outermost may be missing.
#define SPROFILE_F_USER_CALLS 2048
// The stack's copy has all the bytes that it may have: the stack goes on.
#define SPROFILE_F_USER_MORE 4096

// The chains are as in <arch/unwind.h>: entries after the first of a chain are
// looked up by their address minus one. A sample of user code has no kernel
// chain; without SPROFILE_O_STACKS it has one entry in all.
struct sprofile_sample {
    struct sprofile_record head;
    uint32_t task;
    uint32_t thread;
    uint64_t period;      // what the sample represents: ns, or events
    uint8_t kernel_depth; // entries of pc[] for the kernel's chain
    uint8_t user_depth;   // and, after the next words, for the user's
    uint16_t stack_words; // between the two chains; 0, or: the user's esp and
                          // ebp; the stack's words from esp on; and with
                          // SPROFILE_F_USER_GAP the frame at which the chain
                          // started (0: none), else that is ebp
    uint32_t pc[];
};

// A signal frame on the user's stack, and the state that its handler
// interrupted. The innermost is first.
struct sprofile_signal {
    uint32_t frame; // the address of the handler's return address
    uint32_t back;  // that return address
    uint32_t eip, esp, ebp;
    uint32_t from; // the frame with which the chain continues: usually ebp
    uint32_t stack_words; // readable words from esp on
    uint32_t stack[SPROFILE_STACK_WORDS];
};

// Events of the targets; in a system session of all tasks. system.tasks lists
// the tasks that existed when the session began.
enum sprofile_task_kind {
    SPROFILE_T_FORKED = 1, // runs its parent's program
    SPROFILE_T_EXECED,
    SPROFILE_T_ENDED,
    // The thread `parent` of the task, which may be a new one, has this name.
    SPROFILE_T_NAMED,
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

// Flag of its head. The last four bytes of the record, after the path, are the
// load bias: the distance of the program's addresses in memory above those in
// its file, for position-independent programs.
#define SPROFILE_F_LOAD_BIAS 1024

static inline uint32_t sprofile_load_bias(const struct sprofile_task *t)
{
    uint32_t bias = 0;
    if (t->head.flags & SPROFILE_F_LOAD_BIAS)
        __builtin_memcpy(&bias, (const char *)t + t->head.size - sizeof(bias),
                         sizeof(bias));
    return bias;
}

// TSC cycles of a task by the ledger, exact, since the task was created. For
// each target there is one when sampling begins and one when it ends (by a
// pause, or at the task's end); one that was forked while sampling has the
// latter alone. In a system session for each task but the profiling one and the
// kernel's. They are not written during SPROFILE_M_INFO: pause to get them.
enum sprofile_times_kind {
    SPROFILE_TIMES_BEGIN = 1,
    SPROFILE_TIMES_END,
};
struct sprofile_times {
    struct sprofile_record head;
    uint32_t task;
    uint32_t kind; // enum sprofile_times_kind
    uint64_t user, kernel;
};

// This many samples of this CPU were lost, for lack of room, before the next
// one.
struct sprofile_lost {
    struct sprofile_record head;
    uint64_t count;
};
