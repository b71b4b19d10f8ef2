// Which variable-range MTRRs make an area write-combining (SDM vol. 3, 12.11,
// "Memory Type Range Registers"). Pure code; the firmware's registers stay as
// they are.
#pragma once

#include "lib/types.h"

#define MTRRS_MAX 32u

#define MTRR_CAP_COUNT(cap) ((u32)(cap)&0xff)
#define MTRR_CAP_WC (1u << 10)
#define MTRR_TYPE(value) ((u32)(value)&0xff)
#define MTRR_ON (1u << 11) // of the default type, and of a range's mask
#define MTRR_FIXED_ON (1u << 10)
#define MTRR_ADDRESS(value) ((value) & ~0xfffull)
enum { MTRR_UC = 0, MTRR_WC = 1 };

// As in the registers.
struct mtrr_range {
    u64 base, mask;
};
struct mtrrs {
    u64 cap, standard;
    u64 address; // the bits that a physical address may have
    u32 count;
    struct mtrr_range at[MTRRS_MAX];
    u32 added; // bits of those that mtrr_choose has set
};

// Sets free ranges so that as much as possible of [base, base + size) is
// write-combining, and nothing else. Returns the bytes that are, then; if not
// all, *why says the reason.
u64 mtrr_choose(struct mtrrs *m, u64 base, u64 size, const char **why);
