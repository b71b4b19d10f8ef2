// Maps a static ELF32 program.
#pragma once

#include "kernel/mm/aspace.h"
#include "lib/build_id.h"

struct elf_image {
    u32 entry;
    u32 phdr, phnum;     // where the program finds its own headers
    bool executes_stack; // requests an executable stack (PT_GNU_STACK)
    u32 end;             // page-aligned end of the image: the heap starts here
    u32 load_bias;       // memory addresses minus the file's
    u8 build_id[BUILD_ID_MAX];
    u32 build_id_size; // 0: it has none
};

// Maps the file's segments into `as`, those of a position-independent program
// `shift` bytes above their default place. Every field is validated, since the
// file may be foreign or corrupt. 0, -ENOEXEC, -ENOMEM.
int elf_load(struct aspace *as, struct vnode *v, u32 shift,
             struct elf_image *out);
