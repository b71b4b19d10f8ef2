// The kernel's code, as data that is changed while it runs.
//
// A *site* is one instruction of TEXT_SITE bytes, before and after each change:
// a NOP, a jump or a call. Since it is one instruction, no CPU is ever in the
// middle of it. There is a site at the entry of each function, except those
// that an NMI may run (the Makefile's NOTRACE; tools/build/notrace), and one at
// each branch (lib/branch.h).
//
// Who changes sites: kernel/trace/patch.h.
#pragma once

#include "lib/types.h"

#define TEXT_SITE 5u

// Addresses of the functions' sites, ascending. All of them begin as text_nop.
extern const u32 text_entries_start[], text_entries_end[];

// The NOP that this CPU knows.
extern u8 text_nop[TEXT_SITE];

// Writes to `code` the jump from `site` to `target`.
void text_jump(u8 *code, u32 site, u32 target);

// Changes of the code. Between open and close: interrupts off, and every other
// CPU waits in an interrupt, or has not been started. text_write panics if the
// site does not have the old bytes. The code is written by another mapping of
// its pages, which exists only from open to close: no page is ever writable and
// executable. text_close serialises this CPU (SDM vol. 3, 9.1.3); the others
// are serialised by the IRET from the interrupt in which they wait.
void text_open(void);
void text_write(u32 site, const u8 *old, const u8 *new);
// The sites' NOPs become calls of `target` or, if not `on`, these again NOPs.
void text_write_calls(const u32 *sites, u32 count, u32 target, bool on);
void text_close(void);
// One byte, e.g. a breakpoint's, which needs no other CPU to wait: each sees
// the old byte or the new one. The caller serialises all CPUs afterwards. Not
// between open and close.
void text_write_byte(u32 address, u8 old, u8 new);
// Discards instructions that this CPU has fetched. Any context.
void text_serialize(void);

// A branch's site and its entry in the table of branches. Jumps to the label
// `on` if the branch is on. `key` is an address constant.
struct text_branch {
    u32 site, target;
    const void *key;
};
extern const struct text_branch text_branches_start[], text_branches_end[];
#if __STDC_HOSTED__ // a host test of kernel code: never on
#define TEXT_BRANCH(key, on) \
    do {                     \
        if (!(key))          \
            goto on;         \
    } while (0)
#else
#define TEXT_BRANCH(key, on)                              \
    __asm__ goto("1: .byte 0x0f, 0x1f, 0x44, 0, 0\n\t"    \
                 ".pushsection .text_branches, \"a\"\n\t" \
                 ".balign 4\n\t"                          \
                 ".long 1b, %l[" #on "], %c0\n\t"         \
                 ".popsection"                            \
                 :                                        \
                 : "i"(key)                               \
                 :                                        \
                 : on)
#endif
