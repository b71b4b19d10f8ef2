// Start of the application processors: real mode, in a page below 640 KiB, to
// which smp.c copies this code. It never runs at its link address: ebp is the
// page's, and where the CPU wants addresses in memory each AP writes the same
// ones.
//
// An AP enters protected mode, finds its slot by its APIC id, sets `arrived`
// and polls for its stack. Until it has one it uses no memory but this page and
// its slot. All APs may start at once, and at any later time: neither is ever
// freed or used for anything else.

#include "arch/i386/cpu/registers.h"
#include "assembly.h" // from arch/i386/cpu/assembly.c

#define IN_PAGE(label) ((label) - trampoline_start)
#define HERE(label) IN_PAGE(label)(%ebp)

#define FLAT_CODE 0x08
#define FLAT_DATA 0x10

#define NMI 2
#define MACHINE_CHECK 18
#define GATE_SIZE 8
#define GATE_HIGH 6           // the high half of the address
#define INTERRUPT_GATE 0x8e00 // present, of 32 bits

    .section .rodata
    .balign 16
    .global trampoline_start, trampoline_data_start, trampoline_end
trampoline_start:
    .code16
    cli
    cld
    movw %cs, %ax
    movw %ax, %ds
    movzwl %ax, %ebp
    shll $4, %ebp
    leal HERE(flat), %eax
    movl %eax, IN_PAGE(flat_base)
    leal HERE(protected), %eax
    movl %eax, IN_PAGE(protected_address)
    lgdtl IN_PAGE(flat_table)
    movl %cr0, %eax
    orl $ASM_CR0_PE, %eax
    movl %eax, %cr0
    ljmpl *IN_PAGE(protected_address)

    .code32
protected:
    movl $FLAT_DATA, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    // edx: the APIC id, as lapic_first_id finds it (irq/lapic.c).
    movl $ASM_MSR_APIC_BASE, %ecx
    rdmsr
    testl $ASM_APIC_BASE_X2APIC, %eax
    jz 5f
    movl $ASM_MSR_X2APIC_ID, %ecx
    rdmsr
    movl %eax, %edx
    jmp 7f
5:  andl $ASM_APIC_BASE_LOW, %eax
    movl ASM_LAPIC_ID(%eax), %esi
    shrl $24, %esi
    xorl %eax, %eax
    cpuid
    cmpl $ASM_LEAF_TOPOLOGY, %eax
    jb 6f
    movl $ASM_LEAF_TOPOLOGY, %eax
    xorl %ecx, %ecx
    cpuid
    testw %bx, %bx
    jz 6f
    cmpl $ASM_XAPIC_ID_MAX, %edx
    ja 7f
6:  movl %esi, %edx
7:  movl HERE(slots), %esi
    movl HERE(slot_count), %ecx
1:  jecxz dismissed
    cmpl %edx, AP_APIC_ID(%esi)
    je 2f
    addl $AP_SLOT_SIZE, %esi
    decl %ecx
    jmp 1b
2:  movl $1, AP_ARRIVED(%esi)
3:  pause
    movl AP_STACK(%esi), %ebx
    testl %ebx, %ebx
    jz 3b
    cmpl $1, %ebx
    je dismissed
    movl AP_CPU(%esi), %edi

    // After a reset CD and NW are set: caches off.
    movl HERE(cr4), %eax
    movl %eax, %cr4
    movl HERE(efer), %eax
    testl %eax, %eax
    jz 4f
    movl %eax, %esi
    movl $ASM_MSR_EFER, %ecx
    rdmsr
    orl %esi, %eax
    wrmsr
4:  movl HERE(cr3), %eax
    movl %eax, %cr3
    movl %cr0, %eax
    andl $~(ASM_CR0_CD | ASM_CR0_NW), %eax
    orl $(ASM_CR0_PG | ASM_CR0_WP), %eax
    movl %eax, %cr0
    movl %ebx, %esp
    xorl %ebp, %ebp
    movl %edi, %eax // ap_main's argument
    pushl $0        // and return address: none
    movl $ap_main, %edx
    jmp *%edx

    // Not used: halted for ever. Halted CPUs, too, take NMIs and machine checks
    // (of which Intel's CPUs send some to all), and without a handler, or with
    // CR4.MCE clear, would shut the machine down (SDM vol. 3, 6.15, interrupts
    // 2, 8 and 18). What they push is not used: these CPUs share a stack.
dismissed:
    leal HERE(gates), %eax
    movl %eax, HERE(gates_base)
    leal HERE(halted), %eax
    movw %ax, HERE(nmi_gate)
    movw %ax, HERE(machine_check_gate)
    shrl $16, %eax
    movw %ax, HERE(nmi_gate + GATE_HIGH)
    movw %ax, HERE(machine_check_gate + GATE_HIGH)
    lidtl HERE(halt_table)
    leal ASM_TRAMPOLINE_SIZE(%ebp), %esp
    movl HERE(cr4_halted), %eax
    movl %eax, %cr4
halted:
    hlt
    jmp halted

    .balign 8
flat:
    .quad 0
    .quad 0x00cf9b000000ffff // "accessed" already set
    .quad 0x00cf93000000ffff
flat_table:
    .short flat_table - flat - 1
flat_base:
    .long 0
protected_address:
    .long 0
    .short FLAT_CODE

    .balign 8
gates:
    .skip NMI * GATE_SIZE
nmi_gate:
    .short 0, FLAT_CODE, INTERRUPT_GATE, 0
    .skip (MACHINE_CHECK - NMI - 1) * GATE_SIZE
machine_check_gate:
    .short 0, FLAT_CODE, INTERRUPT_GATE, 0
halt_table:
    .short halt_table - gates - 1
gates_base:
    .long 0

    .balign 8
trampoline_data_start: // struct trampoline_data
cr3:
    .long 0
cr4:
    .long 0
cr4_halted:
    .long 0
efer:
    .long 0
slot_count:
    .long 0
slots:
    .long 0
trampoline_end:

    .section .note.GNU-stack, "", @progbits
