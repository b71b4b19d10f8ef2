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
// "[vvar]", "[vdso]", or NULL: the area is something else.
const char *vdso_area_name(const struct area *a);
