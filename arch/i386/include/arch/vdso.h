// The code of the kernel's that programs run: an ELF image (arch/i386/vdso).
#pragma once

#include "lib/elf.h"

extern const u8 vdso_start[], vdso_end[];

// How far behind its entry point:
#define VDSO_SYSTEM_CALL 0   // int $0x80 and a return: AT_SYSINFO
#define VDSO_SIGRETURN 16    // where handlers of signals return to
#define VDSO_RT_SIGRETURN 32 // ... with SA_SIGINFO

// Its address in a program that has the image at `image`.
static inline u32 vdso_address(u32 image, u32 distance)
{
    return image + ((const struct elf_header *)vdso_start)->entry + distance;
}
