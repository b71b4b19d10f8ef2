// The registers in a signal frame (Linux/i386's asm/sigcontext.h).
#pragma once

#include "lib/types.h"

struct sigcontext {
    u32 gs, fs, es, ds; // selectors, padded
    u32 edi, esi, ebp, esp, ebx, edx, ecx, eax;
    u32 trapno, err, eip, cs, eflags, esp_at_signal, ss;
    u32 fpstate; // address or 0
    u32 oldmask, cr2;
};
_Static_assert(sizeof(struct sigcontext) == 88 &&
                   offsetof(struct sigcontext, eip) == 56,
               "asm/sigcontext.h");
