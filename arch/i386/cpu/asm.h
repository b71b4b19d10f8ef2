// Macros for assembly files: places that may fault, and SMAP's two switches.
//
// STAC and CLAC are not there on older CPUs: each place is a 3-byte no-op that
// arch_init_early replaces when the CPU has SMAP.
#pragma once

#include "arch/i386/cpu/offsets.h"

// The instruction at `at` may fault; execution then goes on at `fixup`.
.macro FIXUP at, fixup
    .pushsection .ex_table, "a"
    .long \at, \fixup
    .popsection
.endm

.macro SMAP_SITE opcode
801:
    .byte 0x8d, 0x76, 0x00 // leal 0(%esi), %esi
    .pushsection .smap_sites, "a"
    .long 801b, \opcode
    .popsection
.endm

.macro STAC
    SMAP_SITE 0xcb010f
.endm

.macro CLAC
    SMAP_SITE 0xca010f
.endm
