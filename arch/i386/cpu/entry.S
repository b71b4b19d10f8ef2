// The ways into the kernel and out of it.
//
// Every entry builds a struct trapframe (arch/trap.h), loads the kernel's
// segments and calls C in trap.c; C has done all that is due before it returns.
// C's first three arguments are in eax, edx and ecx (-mregparm=3).
// The way out restores the frame. What it restores may be a user's nonsense:
// selectors that do not exist become an exception of the user's own.

#include "arch/i386/cpu/asm.inc"

#define VECTOR_PROTECTION 13

// Bits of the exceptions with an error code, 8 10-14 17 21 29 30, which the CPU
// pushes (SDM vol. 3, table 6-1).
#define ERROR_CODES 0x60227d00

.macro SAVE_REGISTERS
    pushl %fs
    pushl %es
    pushl %ds
    pushl %eax
    pushl %ebp
    pushl %edi
    pushl %esi
    pushl %edx
    pushl %ecx
    pushl %ebx
    movl $ASM_KERNEL_DS, %edx
    movl %edx, %ds
    movl %edx, %es
    movl $ASM_PERCPU_SEL, %edx
    movl %edx, %fs
    cld
    CLAC
.endm

    .cfi_sections .debug_frame
    .text

// One stub of 16 bytes for each vector.
    .balign 16
    .global trap_stubs
    .type trap_stubs, @function
trap_stubs:
    .set vector, 0
    .rept 256
    .balign 16
    .if vector >= 32 || !((ERROR_CODES >> (vector & 31)) & 1)
    pushl $0
    .endif
    .if vector < 128
    pushl $vector // sign-extended byte
    .else
    .byte 0x68
    .long vector
    .endif
    .if vector < 32
    jmp exception_common
    .else
    jmp interrupt_common
    .endif
    .set vector, vector + 1
    .endr
    .size trap_stubs, . - trap_stubs

    .balign 16
    .type exception_common, @function
exception_common:
    SAVE_REGISTERS
    movl %esp, %eax
    call trap_exception
    jmp trap_return

    .balign 16
    .type interrupt_common, @function
interrupt_common:
    SAVE_REGISTERS
    movl %esp, %eax
    call trap_interrupt
    jmp trap_return

    .balign 16
    .global nmi_entry_point
    .type nmi_entry_point, @function
nmi_entry_point:
    pushl $0
    pushl $2
    SAVE_REGISTERS
    movl %esp, %eax
    call trap_nmi
    jmp trap_return

    .balign 16
    .global syscall_entry_point
    .type syscall_entry_point, @function
syscall_entry_point:
    pushl $-1 // TRAP_SYSCALL_MARK
    pushl %eax
    SAVE_REGISTERS
    movl %esp, %eax
    call trap_syscall

trap_return:
    popl %ebx
    popl %ecx
    popl %edx
    popl %esi
    popl %edi
    popl %ebp
    popl %eax
1:  popl %ds
2:  popl %es
3:  popl %fs
    addl $8, %esp // vector, error
4:  iretl

    FIXUP 1b, bad_ds
    FIXUP 2b, bad_es
    FIXUP 3b, bad_fs
    FIXUP 4b, bad_iret
// Drops what is left of the frame but the part that IRET takes, or has refused:
// as if the user program had raised the exception by its next instruction.
bad_ds:
    addl $4, %esp
bad_es:
    addl $4, %esp
bad_fs:
    addl $12, %esp
bad_iret:
    pushl $0
    pushl $VECTOR_PROTECTION
    jmp exception_common

// From trap_stubs to here the frame is under construction, or being taken down.
    .global trap_code_end
trap_code_end:

// enter_user(frame): leaves by it.
    .balign 16
    .global enter_user
    .type enter_user, @function
enter_user:
    movl %eax, %esp
    jmp trap_return

// A task of its own: nothing is known of the stack that was in use.
    .global double_fault_entry_point
    .type double_fault_entry_point, @function
double_fault_entry_point:
    cld
    xorl %ebp, %ebp
    call double_fault
    hlt

// thread = switch_stack(prev, &prev's esp, next's esp); prev stays in eax
    .balign 16
    .global switch_stack
    .type switch_stack, @function
switch_stack:
    .cfi_startproc
    PUSH %ebp
    .cfi_offset ebp, -8
    PUSH %ebx
    PUSH %esi
    PUSH %edi
    movl %esp, (%edx)
    movl %ecx, %esp
    POP %edi
    POP %esi
    POP %ebx
    POP %ebp
    .cfi_restore ebp
    ret
    .cfi_endproc

// Where switch_stack returns to in a new thread: thread.c's struct new_stack.
    .global thread_begin
    .type thread_begin, @function
thread_begin:
    call sched_switch_finished
    sti
    popl %edx // entry
    popl %eax // its argument
    xorl %ebp, %ebp
    pushl $0 // its caller
    jmp *%edx

// The same for a fork's child: it leaves by its trap frame.
    .global fork_child_begin
    .type fork_child_begin, @function
fork_child_begin:
    call sched_switch_finished
    call fork_child_return
    hlt

    .section .note.GNU-stack, "", @progbits
