// The kernel's own pages that every program maps: the time page ([vvar],
// readable) and the code that reads it ([vdso], readable and executable). They
// cannot be made writable.
#pragma once

#include "kernel/mm/aspace.h"

// Their place: above the stack, so that they need no page table of their own.
#define VDSO_END (USER_END - PAGE_SIZE)
#define VDSO_ROOM (2 * PAGE_SIZE)

// Prepares the pages for mapping. Once, before the first program.
void vdso_init(void);
// Maps them into a new space: as->vdso is the address of the ELF image
// (AT_SYSINFO_EHDR). 0 or -ENOMEM.
int vdso_map(struct aspace *as);
// "[vvar]", "[vdso]", or NULL: the area is another one.
const char *vdso_area_name(const struct area *a);
