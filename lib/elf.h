// ELF32, limited to static i386 programs (System V gABI, chapters 4 and 5; i386
// psABI).
#pragma once

#include "lib/types.h"

#define ELF_MAGIC "\177ELF"
#define ELF_CLASS32 1
#define ELF_DATA_LSB 1
#define ELF_TYPE_EXEC 2
#define ELF_TYPE_DYN 3
#define ELF_MACHINE_386 3

struct elf_header {
    u8 ident[16];
    u16 type, machine;
    u32 version, entry, phoff, shoff, flags;
    u16 ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};
_Static_assert(sizeof(struct elf_header) == 52, "gABI");

#define ELF_PT_LOAD 1
#define ELF_PT_INTERP 3
#define ELF_PT_NOTE 4
#define ELF_PT_GNU_STACK 0x6474e551
#define ELF_PF_X 1
#define ELF_PF_W 2
#define ELF_PF_R 4

struct elf_segment {
    u32 type, offset, vaddr, paddr, filesz, memsz, flags, align;
};
_Static_assert(sizeof(struct elf_segment) == 32, "gABI");

#define ELF_SHT_SYMTAB 2
#define ELF_SHT_NOBITS 8
#define ELF_SHF_COMPRESSED 0x800

struct elf_section {
    u32 name, type, flags, addr, offset, size, link, info, addralign, entsize;
};
_Static_assert(sizeof(struct elf_section) == 40, "gABI");

#define ELF_COMPRESS_ZLIB 1

// What a compressed section begins with.
struct elf_compression {
    u32 type, size, addralign;
};
_Static_assert(sizeof(struct elf_compression) == 12, "gABI");

#define ELF_STT_NOTYPE 0
#define ELF_STT_FUNC 2
#define ELF_STT_GNU_IFUNC 10

struct elf_symbol {
    u32 name, value, size;
    u8 info, other;
    u16 shndx;
};
_Static_assert(sizeof(struct elf_symbol) == 16, "gABI");

// Auxiliary vector (i386 psABI, "Process Initialization").
#define AT_NULL 0
#define AT_PHDR 3
#define AT_PHENT 4
#define AT_PHNUM 5
#define AT_PAGESZ 6
#define AT_BASE 7
#define AT_FLAGS 8
#define AT_ENTRY 9
#define AT_UID 11
#define AT_EUID 12
#define AT_GID 13
#define AT_EGID 14
#define AT_PLATFORM 15
#define AT_HWCAP 16
#define AT_CLKTCK 17
#define AT_SECURE 23
#define AT_RANDOM 25
#define AT_EXECFN 31
#define AT_SYSINFO 32
#define AT_SYSINFO_EHDR 33
