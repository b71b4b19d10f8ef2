// Decoding of the machine-check architecture's error banks (SDM vol. 3B,
// 15.3.2, 15.9). Pure code.
#pragma once

#include "lib/types.h"

// IA32_MCi_STATUS
#define MCA_STATUS_VALID (1ull << 63)
#define MCA_STATUS_MISC_VALID (1ull << 59)
#define MCA_STATUS_ADDRESS_VALID (1ull << 58)

// Describes the error code, the low 16 bits of a status, such as "cache, level
// 1: data read"; returns what format() returns.
int mca_describe_code(u32 code, char *text, size_t size);
// Describes the status flags, such as "uncorrected, context corrupt".
int mca_describe_flags(u64 status, char *text, size_t size);
