// The pages of the kernel's own that every program has: the page that tells the
// time ([vvar], readable) and the code that reads it ([vdso], readable and
// executable). Nobody can make them writable.
#pragma once

#include "kernel/mm/aspace.h"

// Where they are: above the stack, so that they need no page table of their
// own.
#define VDSO_END (USER_END - PAGE_SIZE)
#define VDSO_ROOM (2 * PAGE_SIZE)

// Makes them mappable. Once, before the first program.
void vdso_init(void);
// Maps them into a new space: as->vdso is where the ELF image begins
// (AT_SYSINFO_EHDR). -ENOMEM.
int vdso_map(struct aspace *as);
// The address of what is so far behind its entry point, wherever the program
// has moved it.
#define VDSO_SYSTEM_CALL 0   // int $0x80 and a return: AT_SYSINFO
#define VDSO_SIGRETURN 16    // where handlers of signals return to
#define VDSO_RT_SIGRETURN 32 // ... with SA_SIGINFO
u32 vdso_address(const struct aspace *as, u32 distance);
// "[vvar]", "[vdso]", or NULL: the area is something else.
const char *vdso_area_name(const struct area *a);
