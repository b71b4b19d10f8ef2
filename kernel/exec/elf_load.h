// Maps a static ELF32 program.
#pragma once

#include "kernel/mm/aspace.h"

struct elf_image {
    u32 entry;
    u32 phdr, phnum; // where the program finds its own headers
    u32 end;         // page-aligned end of the image: the heap starts here
};

// Maps the file's segments into `as`. Every field of a foreign or corrupt file
// is checked: -ENOEXEC; -ENOMEM.
int elf_load(struct aspace *as, struct vnode *v, struct elf_image *out);
