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
    SPROFILE_M_DATA_READ = 5,
    // arg[1] = address of struct sprofile_info, filled at once.
    SPROFILE_M_INFO = 6,
};

#define SPROFILE_SOURCE_NAME 16

#define SPROFILE_O_FROM_EXEC 1 // paused until the task's next execve succeeds

struct sprofile_options {
    uint32_t size;                     // sizeof(struct sprofile_options)
    uint32_t rate_hz;                  // wanted; 0: 1000
    uint32_t flags;                    // SPROFILE_O_...
    uint32_t ring_records;             // per CPU, 0: the kernel chooses
    char source[SPROFILE_SOURCE_NAME]; // "" : the best
};

// The honest header. Every sampling interrupt that hit the target is counted in
// exactly one of user, kernel; taken == stored + lost.
struct sprofile_info {
    char source[SPROFILE_SOURCE_NAME];
    uint32_t rate_hz;  // really set
    uint32_t cpus;     // sampled
    uint64_t expected; // ticks due on all CPUs while the target was running
    uint64_t taken;    // samples that hit the target
    uint64_t lost;     // taken, but no room in the ring
    uint64_t user, kernel;
    uint64_t others; // ticks that hit something else (not the target)
    uint64_t missed; // ticks that came late and stand for several periods
    uint64_t cycles; // TSC cycles spent sampling for this session
    uint64_t tsc_hz;
    uint64_t elapsed_ns; // since BEGIN, without pauses
};

// The record stream: 8-byte aligned records, each with this head.
struct sprofile_record {
    uint16_t type; // SPROFILE_R_...
    uint16_t size; // bytes, a multiple of 8, head included
    uint16_t cpu;
    uint16_t flags; // SPROFILE_F_...
    uint64_t time;  // TSC
};

#define SPROFILE_R_SAMPLE 1

#define SPROFILE_F_KERNEL 1 // the interrupted code was the kernel's
#define SPROFILE_F_IDLE 2

struct sprofile_sample {
    struct sprofile_record head;
    uint32_t task;
    uint32_t thread;
    uint32_t weight; // periods this sample stands for, >= 1
    uint32_t depth;  // entries in pc[], >= 1
    uint32_t pc[];   // pc[0]: the interrupted instruction; then callers
};
