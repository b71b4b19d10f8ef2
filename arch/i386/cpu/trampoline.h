// The page in which the application processors (AP) start (trampoline.S;
// boot_info.start_page): the data that the boot CPU writes into it; and the
// table of their slots, which is elsewhere.
#pragma once

#define TRAMPOLINE_SIZE 4096

#include "lib/types.h"

// One for each expected APIC id.
struct ap_slot {
    u32 arrived; // written by the AP itself
    u32 apic_id;
    u32 stack; // 0: wait; 1: sleep for ever; else: start on this stack
    struct cpu *cpu;
};
#define AP_STACK_WAIT 0u
#define AP_STACK_DISMISS 1u

struct trampoline_data {
    u32 cr3, cr4;
    u32 cr4_halted; // of CPUs that are not used
    u32 efer;       // bits to set in EFER; 0: the register does not exist
    u32 slot_count;
    u32 slots; // physical address, of directly mapped memory
};
