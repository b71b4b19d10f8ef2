// The frame table of the kernel's own code, put into the image by the build
// (tools/build/kframes): for each range of code, where the return address is.
// It is absent in the first link pass.

#include "arch/mmu.h"
#include "kernel/base/log.h"

#define KIND_BITS 8

extern const u32 kframe_count __attribute__((weak));
extern const u32 kframe_table[] __attribute__((weak)); // sorted

u32 kframe_kind(u32 pc)
{
    if (!&kframe_count || pc < KERNEL_BASE)
        return KFRAME_UNKNOWN;
    // The largest possible entry for this pc.
    u32 key = (linked_address(pc) - KERNEL_BASE) << KIND_BITS |
              ((1u << KIND_BITS) - 1);
    u32 low = 0, high = kframe_count; // the last entry at or below pc
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (kframe_table[middle] <= key)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? kframe_table[low - 1] & ((1u << KIND_BITS) - 1)
               : KFRAME_UNKNOWN;
}
