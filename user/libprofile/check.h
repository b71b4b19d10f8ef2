// The check of a profile: the shares of its samples that hit user mode, the
// kernel and idle CPUs, against the times of the same session in the kernel's
// ledger, which are exact; the same of each task; and, of a session of the
// whole system, the shares of the CPUs. It is made for sources that sample
// time, if no sample was lost.
#pragma once

#include "samples.h"

#include <stdio.h>

#include <strobe/abi.h>

// The kernel and its interrupts are one part: their entries are sampled before
// the kernel has marked them as interrupts.
enum { PART_USER, PART_KERNEL, PART_IDLE, CHECK_PARTS };

// A task in a part. Cells that may expect fewer than CHECK_CELL_LEAST samples,
// and what no task's times are known of, are pooled as the other tasks.
struct check_cell {
    uint32_t task; // or CHECK_OTHERS
    uint32_t part;
    double sampled; // 0...1
    // Its exact share: in the kernel between two bounds, as not all of an
    // interrupt is sampled as one.
    double least, most;
    double p;
    double squares; // of the samples' weights
};
#define CHECK_OTHERS UINT32_MAX
#define CHECK_CELLS 64 // those with the largest shares
#define CHECK_CELL_LEAST 10

struct check {
    double sampled[CHECK_PARTS], exact[CHECK_PARTS]; // 0...1
    double squares[CHECK_PARTS];                     // of the samples' weights
    struct weight {
        double sum, squares;
    } all;
    // Each CPU has the session's time, less what is not sampled: the tool and
    // the interrupts that take samples. How that is divided is not known, so
    // the exact share of a CPU is between two bounds. No CPU: not checked.
    uint32_t cpus;
    double on_cpu[STROBE_CPUS_MAX], least, most; // 0...1
    uint32_t worst;                              // the CPU with the lowest p,
    double worst_p;                              // and that
    struct check_cell cells[CHECK_CELLS + 2];
    uint32_t cell_count; // 0: not checked by task
    uint32_t worst_cell;
    // The probability that samples of the exact shares differ from them as
    // much, or more. Below CHECK_CHANCE the samples are wrong.
    double p;
};
#define CHECK_CHANCE 0.001
#define CHECK_LEAST 10 // samples

// Checks the samples of an event. False: it cannot be checked.
bool check_make(struct check *c, const struct sprofile_info *info,
                const struct samples *s, uint32_t event);

// The lines "Check:", or nothing if it cannot be checked. `cost`: the share of
// the time that sampling took, 0...1.
void check_print(FILE *out, const struct sprofile_info *info,
                 const struct samples *s, uint32_t event, double cost);
// "check": an object or null, with a comma.
void check_print_json(FILE *out, const struct sprofile_info *info,
                      const struct samples *s);
