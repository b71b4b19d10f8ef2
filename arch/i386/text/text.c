// Changing the kernel's code (arch/text.h).
//
// Before arch_init_memory the code is mapped writable, and is written directly;
// afterwards by a window of two pages (a site may lie on two). Only the CPU
// that has opened it uses it, so only that CPU's TLB is flushed.
#include "arch/text.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/mm/entry.h"
#include "arch/i386/mm/memory.h"
#include "arch/i386/text/text_init.h"
#include "kernel/base/log.h"
#include "lib/string.h"

#define OPCODE_CALL 0xe8
#define OPCODE_JUMP 0xe9

extern char text_start[], text_end[];

u8 text_nop[TEXT_SITE] = { 0x0f, 0x1f, 0x44, 0, 0 }; // NOPL 0(%eax,%eax,1)
// The same for a CPU that does not know NOPL: LEA %ds:0(%esi), %esi.
static const u8 nop_of_old[TEXT_SITE] = { 0x3e, 0x8d, 0x74, 0x26, 0 };

// --- start-up ---------------------------------------------------------------

// SDM vol. 2B, NOP: families 6 and 15 have the multi-byte NOP. Of other makers'
// family 6 some have not.
static bool has_nopl(void)
{
    struct cpuid maker = cpuid(0, 0);
    bool known =
        maker.ecx == 0x6c65746e || maker.ecx == 0x444d4163; // ntel cAMD
    u32 family = cpuid(1, 0).eax >> 8 & 15;
    return known && (family == 6 || family == 15);
}

void text_init(void)
{
    if (has_nopl())
        return;
    memcpy(text_nop, nop_of_old, TEXT_SITE);
    for (const u32 *site = text_entries_start; site < text_entries_end; site++)
        memcpy((void *)*site, nop_of_old, TEXT_SITE);
    for (const struct text_branch *b = text_branches_start;
         b < text_branches_end; b++)
        memcpy((void *)b->site, nop_of_old, TEXT_SITE);
    text_serialize();
}

// --- changes ----------------------------------------------------------------

// How far the window is behind the first page of code that it shows; 0: it
// shows none.
static u32 behind;
#define SHOWN (2 * PAGE_SIZE - TEXT_SITE + 1) // a site may begin there

void text_serialize(void)
{
    cpuid(0, 0);
}

// False: the window cannot be used yet.
static NOINLINE bool show(u32 page)
{
    char *entry = leaf_entry(&kernel_pagetable, text_window());
    assert(page + PAGE_SIZE > (u32)text_start && page < (u32)text_end);
    if (!entry)
        return false;
    u64 value = entry_make(image_paddr((void *)page), PROT_R | PROT_W);
    entry_exchange(entry, value);
    entry_exchange(entry + entry_size(), value + PAGE_SIZE);
    tlb_flush_page(text_window());
    tlb_flush_page(text_window() + PAGE_SIZE);
    behind = text_window() - page;
    return true;
}

// The address by which `address` and the bytes behind it can be written.
static ALWAYS_INLINE u8 *writable(u32 address)
{
    if (unlikely(address + behind - text_window() >= SHOWN) &&
        !show(address & PAGE_MASK))
        return (u8 *)address; // the early page tables
    return (u8 *)(address + behind);
}

void text_open(void)
{
    assert(!irqs_enabled() && !behind);
}

void text_close(void)
{
    if (behind) {
        char *entry = leaf_entry(&kernel_pagetable, text_window());
        entry_exchange(entry, 0);
        entry_exchange(entry + entry_size(), 0);
        tlb_flush_page(text_window());
        tlb_flush_page(text_window() + PAGE_SIZE);
    }
    behind = 0;
    text_serialize();
}

// The bytes of a site as a word and a byte.
struct PACKED site_code {
    u32 word;
    u8 byte;
};
_Static_assert(sizeof(struct site_code) == TEXT_SITE, "");

static NOINLINE NORETURN void mismatch(u32 site, struct site_code expected,
                                       const u8 *found)
{
    const u8 *old = (const u8 *)&expected;
    panic("the code at %#x is %02x %02x %02x %02x %02x, not "
          "%02x %02x %02x %02x %02x",
          site, found[0], found[1], found[2], found[3], found[4], old[0],
          old[1], old[2], old[3], old[4]);
}

static ALWAYS_INLINE void write(u32 site, struct site_code old,
                                struct site_code new)
{
    struct site_code *code = (void *)writable(site);
    if (code->word != old.word || code->byte != old.byte)
        mismatch(site, old, (const u8 *)code);
    *code = new;
}

static ALWAYS_INLINE struct site_code code_of(const u8 *bytes)
{
    return *(const struct site_code *)bytes;
}

void text_write(u32 site, const u8 *old, const u8 *new)
{
    write(site, code_of(old), code_of(new));
}

void text_write_byte(u32 address, u8 old, u8 new)
{
    assert(address >= (u32)text_start && address < (u32)text_end);
    u32 flags = irq_save();
    text_open();
    u8 *code = writable(address);
    if (*code != old)
        panic("the code at %#x is %02x, not %02x", address, *code, old);
    WRITE_ONCE(*code, new);
    text_close();
    irq_restore(flags);
}

// --- instructions -----------------------------------------------------------

static ALWAYS_INLINE struct site_code relative(u8 opcode, u32 site, u32 target)
{
    u32 distance = target - (site + TEXT_SITE);
    return (struct site_code){ .word = distance << 8 | opcode,
                               .byte = (u8)(distance >> 24) };
}

void text_jump(u8 *code, u32 site, u32 target)
{
    *(struct site_code *)code = relative(OPCODE_JUMP, site, target);
}

static ALWAYS_INLINE void write_calls(const u32 *sites, u32 count, u32 target,
                                      bool on)
{
    struct site_code nop = code_of(text_nop);
    for (const u32 *end = sites + count; sites < end; sites++) {
        struct site_code call = relative(OPCODE_CALL, *sites, target);
        write(*sites, on ? nop : call, on ? call : nop);
    }
}

// Two loops: the machine stands still.
void text_write_calls(const u32 *sites, u32 count, u32 target, bool on)
{
    if (on)
        write_calls(sites, count, target, true);
    else
        write_calls(sites, count, target, false);
}
