// Prints the registers in a panic report.

#include "arch/i386/cpu/arch_cpu.h"
#include "arch/regs.h"
#include "kernel/base/log.h"

static u32 read_cr0(void)
{
    u32 v;
    __asm__ volatile("movl %%cr0, %0" : "=r"(v));
    return v;
}

static u32 read_cr3(void)
{
    u32 v;
    __asm__ volatile("movl %%cr3, %0" : "=r"(v));
    return v;
}

void trap_print_registers(const struct trapframe *tf)
{
    bool user = trap_from_user(tf);
    console_printf("eip %08x cs %04x eflags %08x vector %u error %#x\n",
                   tf->eip, tf->cs & 0xffff, tf->eflags, tf->vector, tf->error);
    console_printf("eax %08x ebx %08x ecx %08x edx %08x\n", tf->eax, tf->ebx,
                   tf->ecx, tf->edx);
    console_printf("esi %08x edi %08x ebp %08x esp %08x\n", tf->esi, tf->edi,
                   tf->ebp, user ? tf->esp : (u32)(&tf->esp));
    console_printf("cr0 %08x cr2 %08x cr3 %08x cr4 %08x\n", read_cr0(),
                   read_cr2(), read_cr3(), read_cr4());
}
