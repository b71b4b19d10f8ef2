// selftest: what its files share. A check reports one row or several, each with
// a verdict.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum verdict { OK, NOT_THERE, WRONG, VERDICTS };

// Adds a row: the name of what was checked, and a text: how, or why.
void report(enum verdict verdict, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// The verdict on what the kernel does not use, by its reason. Reasons that are
// not known mean that it is there and does not work.
enum verdict verdict_of_reason(const char *why);

// cpus.c: moves the caller to a CPU. False: it is not possible.
bool run_on(long cpu);
void run_anywhere(void);
long cpu_count(void);

// The checks, each of one kind of device.
void check_cpus(void);
void check_cpu_timers(void);
void check_tsc(void);
void check_time(void);
void check_clocks(void);
void check_timers(void);
void check_sources(void);
void check_books(void);
void check_errors(void);
