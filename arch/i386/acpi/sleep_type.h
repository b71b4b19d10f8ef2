// The sleep types of the power-off state S5, from AML byte code.
#pragma once

#include "lib/types.h"

struct sleep_type {
    bool known;
    u8 a, b; // SLP_TYP for PM1a and PM1b
};

#define SLEEP_TYPE_MAX 7u // SLP_TYP has three bits (ACPI 6.4, table 4.12)

// Finds the object \_S5 in `size` bytes of AML: without an interpreter, by the
// encoding of its definition, which must be a package of constants. False, and
// *out is unchanged: there is none, or it is malformed or computed.
bool sleep_type_find(const u8 *aml, u32 size, struct sleep_type *out);
