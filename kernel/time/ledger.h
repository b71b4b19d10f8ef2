// The ledger: on every CPU exactly one account is open at any moment. Each
// change reads the TSC once and charges the account that closes, so the sum of
// all accounts is the TSC time since the CPU's ledger began, to the cycle.
#pragma once

#include "arch/cpu.h"

struct account {
    u64 cycles; // written by the CPU that has it open only
};
