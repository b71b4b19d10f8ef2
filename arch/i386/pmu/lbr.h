// Last branch records of one CPU, through struct pmu_io.
#pragma once

#include "arch/i386/pmu/counters.h"
#include "arch/lbr.h"

enum lbr_kind { LBR_NONE, LBR_BY_MODEL, LBR_ARCHITECTURAL };

struct lbr {
    const struct pmu_io *io;
    enum lbr_kind kind;
    u32 depth;
    u32 from, to, info; // first MSR of each; info 0: none
};

// Reads a byte of the running thread's code. False: it is not present.
struct lbr_code {
    bool (*read)(void *arg, u32 at, u8 *byte);
    void *arg;
};

// NULL and *l filled, or why this CPU's cannot be used. Changes registers that
// are not in use only.
const char *lbr_detect(struct lbr *l, const struct pmu_io *io);
void lbr_begin(const struct lbr *l); // with an empty stack
void lbr_end(const struct lbr *l);
// False: the CPU does not record; a debug exception ends that.
bool lbr_records(const struct lbr *l);
void lbr_store(const struct lbr *l, struct lbr_stack *out);
void lbr_replace(const struct lbr *l, const struct lbr_stack *in);
u32 lbr_list(const struct lbr *l, const struct lbr_code *code, u32 *out,
             u32 max);
