// Reconciles a sampling profile of the kernel with a trace of its calls, made
// in the same run: each function's share of the samples, and of the traced own
// time, after what one of both cannot see is removed from the other.
//
//     samples in           are
//     user mode, idle      left out: the trace has functions of the kernel only
//     interrupts           removed: they have no caller, and their own root
//     the tracing's stubs  removed: the trace removes them from its times
//     code without a site  the innermost traced caller's, as in the trace
//
// Of a trace, only what threads did in traced functions is compared. Its times
// contain the sampler's NMIs, which lengthen all functions alike: those that
// hit a stub are the stub's.
//
// The model: samples are taken at random distances, whatever the kernel does.
// So of `compared` samples a function with the share p of the time has a
// binomial number, with the mean compared * p and the variance compared * p *
// (1 - p). The trace measures p itself, in the same run, without an error of
// sampling. The NMIs in a function's time make p vary with its samples, if
// little: then the difference varies less than the model says, and less often
// right profiles are taken for wrong than is stated.
#pragma once

#include "binomial.h"
#include "call_paths.h"
#include "functions.h"
#include "samples.h"

struct reconciled_row {
    uint32_t function; // entry address, or the symbol's if it is not traced
    char name[64];
    bool traced;
    uint64_t in;         // samples in its own code, in all modes but idle
    uint64_t samples;    // that are compared: code without a site included
    uint64_t calls, own; // own: TSC cycles
};

struct reconciliation {
    struct reconciled_row *rows; // by the larger share, highest first
    uint32_t count;
    uint64_t user, idle;                 // samples
    uint64_t kernel;                     // all others; of them are removed:
    uint64_t interrupts, stubs, outside; // outside: no traced function called
    uint64_t compared;                   // the rest
    uint64_t calls, own;                 // of all functions
    struct reconciled_row others;        // sum of those with less than
                                         // RECONCILED_LEAST; itself judged if
                                         // that is not less
    uint32_t judged, agreeing;           // within RECONCILED_SIGMAS
    const struct reconciled_row *worst;  // the least likely; NULL: none judged
    double chance; // that any of those judged is as unlikely: 0...1, or less
    bool agree;    // that is not below RECONCILED_CHANCE
};

// Functions with this share of the traced time are judged each, the others as
// one: the trace's share is exact, so that what is judged is no matter of
// chance.
#define RECONCILED_LEAST 0.01
#define RECONCILED_SIGMAS 3.0
bool reconciled_judged(const struct reconciliation *r,
                       const struct reconciled_row *row);

// `traced`: all functions that the trace has. False: not enough memory, or
// there are no symbols of the kernel.
bool reconcile(struct reconciliation *r, struct samples *s,
               const struct functions *traced, const struct call_paths *p);
void reconciliation_free(struct reconciliation *r);

// Shares of 0 to 1: of samples, of traced time.
double reconciled_sampled(const struct reconciliation *r,
                          const struct reconciled_row *row);
double reconciled_traced(const struct reconciliation *r,
                         const struct reconciled_row *row);
// By how many standard deviations the samples differ from the traced share.
// Infinite: samples where the trace has no time.
double reconciled_sigmas(const struct reconciliation *r,
                         const struct reconciled_row *row);
// The 95 % confidence interval of the sampled share: it has the traced share if
// the difference is within 1.96 standard deviations.
struct interval reconciled_interval(const struct reconciliation *r,
                                    const struct reconciled_row *row);
// The probability that samples of the traced share differ from it by as much,
// or more: twice that of one side, from the binomial distribution itself.
double reconciled_chance(const struct reconciliation *r,
                         const struct reconciled_row *row);
// Of many functions some differ by more than RECONCILED_SIGMAS by chance, so
// together they are judged by their number times the least chance of one
// (Bonferroni's inequality). Of right profiles that is below RECONCILED_CHANCE
// once in 1 / RECONCILED_CHANCE runs, or less often.
#define RECONCILED_CHANCE 0.001
