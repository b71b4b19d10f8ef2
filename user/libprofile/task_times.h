// The exact times of tasks in a session, by the kernel's ledger: what they
// consumed while it sampled.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <strobe/kbox.h>

struct task_time {
    uint32_t task;
    uint8_t event;         // as in struct sample_count
    bool known;            // false: it is sampled, and was when this was read
    uint64_t user, kernel; // TSC cycles
    uint64_t user_at, kernel_at; // at the last record
    uint32_t next;               // next in the same bucket
};

#define TASK_TIME_BUCKETS 256u
struct task_times {
    struct task_time *list;
    uint32_t count, room;
    uint32_t buckets[TASK_TIME_BUCKETS]; // index in the list, plus 1
    bool incomplete;                     // for want of memory
};

// *t is zeroed to begin with.
void task_times_free(struct task_times *t);
// Takes a record of a session's stream. Records of a task are in the order of
// time.
void task_times_take(struct task_times *t, const struct sprofile_times *r);
// Sets a task's times, as a file has them.
void task_times_set(struct task_times *t, uint8_t event, uint32_t task,
                    uint64_t user, uint64_t kernel);
