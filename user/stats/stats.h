// Declarations shared by the parts of stats.
#pragma once

#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

struct settings {
    bool json;
    bool one_task; // -t
    uint32_t task;
};

// Each prints one view and returns the exit status. (JSON: one value, without a
// newline after it.)
int show_uptime(const struct settings *s);
int show_audit(const struct settings *s); // 1: the accounts do not balance
int show_memory(const struct settings *s);
int show_kernel(const struct settings *s);
int show_syscalls(const struct settings *s);
int show_locks(const struct settings *s);
int show_errors(const struct settings *s);

// Reads the records of a node that is optional in a kernel. If it does not
// exist, ends the program with a message that `what` is not counted.
void *read_optional(const char *path, uint32_t record, size_t *count,
                    const char *what);
void add_percent(struct table *t, uint64_t part, uint64_t whole);
