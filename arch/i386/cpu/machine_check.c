// An error that the hardware cannot correct raises exception 18, on many
// machines on all CPUs at once, at any instruction. No state can be trusted
// then, so the kernel panics and prints the banks of error registers. Any CPU's
// banks may hold the error: each CPU records its own, and the first to arrive
// waits a short time for the other CPUs and reports all.
//
// With CR4.MCE clear the CPU would shut down instead, which resets the machine.

#include "arch/i386/cpu/machine_check.h"

#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/mca.h"
#include "arch/i386/cpu/msr.h"
#include "arch/i386/cpu/registers.h"
#include "kernel/base/log.h"
#include "lib/cpu_memory.h"
#include "lib/format.h"

#define MCG_CAP 0x179
#define MCG_STATUS 0x17a
#define MCG_CTL 0x17b
#define MC_CTL(bank) (0x400 + 4 * (bank))
#define MC_STATUS(bank) (0x401 + 4 * (bank))
#define MC_ADDR(bank) (0x402 + 4 * (bank))
#define MC_MISC(bank) (0x403 + 4 * (bank))

#define MCG_CAP_BANKS 0xffu
#define MCG_CAP_CTL 0x100u
#define MCG_STATUS_RESTARTABLE 1u
#define ALL_ERRORS (~0ull)

#define BANKS_MAX 32u
#define BANKS_SHOWN 8u
#define OTHERS_SPINS 1000000u // about 10 ms for the other CPUs to arrive

struct bank {
    u32 number;
    u64 status, address, misc;
};

// Written by its own CPU, before that CPU increments `entered`.
static struct {
    u32 count; // banks with an error; the first BANKS_SHOWN are kept
    struct bank banks[BANKS_SHOWN];
} * found[CPU_MAX];
CPU_MEMORY(found, 1);
static u32 entered; // CPUs in the exception; atomic

// In this file a register that does not exist reads as 0.
static u64 read(u32 msr)
{
    u64 value = 0;
    read_msr_safely(msr, &value);
    return value;
}

static u32 bank_count(void)
{
    return cpu_features.mca ? MIN((u32)read(MCG_CAP) & MCG_CAP_BANKS, BANKS_MAX)
                            : 0;
}

// Bank 0 of a P6 belongs to the firmware (SDM vol. 3B, 15.3.2.1).
static bool is_firmware_bank(u32 bank)
{
    return !bank && cpu_features.family == 6 && cpu_features.model < 0x1a;
}

static bool read_bank(u32 number, struct bank *b)
{
    b->number = number;
    b->status = read(MC_STATUS(number));
    b->address =
        b->status & MCA_STATUS_ADDRESS_VALID ? read(MC_ADDR(number)) : 0;
    b->misc = b->status & MCA_STATUS_MISC_VALID ? read(MC_MISC(number)) : 0;
    return b->status & MCA_STATUS_VALID;
}

struct line {
    char text[224];
};

static const struct line *describe(const struct bank *b, struct line *line)
{
    char code[96], flags[96], where[32] = "", misc[32] = "";
    mca_describe_code((u32)b->status & 0xffff, code, sizeof(code));
    mca_describe_flags(b->status, flags, sizeof(flags));
    if (b->status & MCA_STATUS_ADDRESS_VALID)
        format(where, sizeof(where), ", address %#llx", b->address);
    if (b->status & MCA_STATUS_MISC_VALID)
        format(misc, sizeof(misc), ", misc %#llx", b->misc);
    format(line->text, sizeof(line->text),
           "bank %u, status %016llx: %s (%s)%s%s", b->number, b->status, code,
           flags, where, misc);
    return line;
}

void machine_check_init_cpu(void)
{
    if (!cpu_features.mce)
        return;
    u32 banks = bank_count();
    if (read(MCG_CAP) & MCG_CAP_CTL)
        write_msr_safely(MCG_CTL, ALL_ERRORS);
    for (u32 i = 0; i < banks; i++) {
        struct bank b;
        struct line line;
        if (read_bank(i, &b))
            log_printf("machine check: CPU %u, from before the start: %s\n",
                       this_cpu()->id, describe(&b, &line)->text);
        if (!is_firmware_bank(i))
            write_msr_safely(MC_CTL(i), ALL_ERRORS);
        write_msr_safely(MC_STATUS(i), 0);
    }
    write_cr4(read_cr4() | ASM_CR4_MCE);
}

static void record_banks(void)
{
    u32 cpu = this_cpu()->id, banks = bank_count();
    for (u32 i = 0; i < banks; i++) {
        struct bank b;
        if (read_bank(i, &b) && found[cpu]->count++ < BANKS_SHOWN)
            found[cpu]->banks[found[cpu]->count - 1] = b;
    }
}

static u32 print_banks(u32 cpu)
{
    struct line line;
    for (u32 i = 0; i < MIN(found[cpu]->count, BANKS_SHOWN); i++)
        console_printf("machine check: CPU %u, %s\n", cpu,
                       describe(&found[cpu]->banks[i], &line)->text);
    return found[cpu]->count;
}

static void wait_for_others(void)
{
    for (u32 i = 0; i < OTHERS_SPINS; i++) {
        if (__atomic_load_n(&entered, __ATOMIC_ACQUIRE) >= cpu_count)
            return;
        cpu_relax();
    }
}

void machine_check(const struct trapframe *tf)
{
    record_banks();
    if (__atomic_fetch_add(&entered, 1, __ATOMIC_ACQ_REL))
        cpu_halt_forever(); // the first CPU reports
    wait_for_others();
    smp_stop_others();
    console_printf("\n");
    u32 errors = 0;
    for (u32 i = 0; i < cpu_count; i++)
        errors += print_banks(i);
    panic_trap(tf, "machine check: %s; %s",
               errors ? "hardware error, see above"
                      : "the hardware does not report the cause",
               read(MCG_STATUS) & MCG_STATUS_RESTARTABLE
                   ? "the interrupted code can be resumed"
                   : "the interrupted code cannot be resumed");
}
