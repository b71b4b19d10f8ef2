// Kernel code that user programs execute: an ELF image (arch/i386/vdso).
#pragma once

#include "lib/elf.h"

extern const u8 vdso_start[], vdso_end[];

// Offsets from its entry point:
#define VDSO_SYSTEM_CALL 0   // int $0x80 and return: AT_SYSINFO
#define VDSO_SIGRETURN 16    // return address for signal handlers
#define VDSO_RT_SIGRETURN 32 // the same with SA_SIGINFO

// The address at that offset in a program whose image is at `image`.
static inline u32 vdso_address(u32 image, u32 distance)
{
    return image + ((const struct elf_header *)vdso_start)->entry + distance;
}
