// Kernel entries and exits.
//
// Every entry builds a struct trapframe (arch/regs.h), loads the kernel's
// segments and calls C in trap.c, which completes all pending work before it
// returns. C's first three arguments are in eax, edx and ecx (-mregparm=3).
//
// A thread's time is divided into user and kernel time (kernel/time/ledger.h)
// here, as close to the frame as possible in both directions. When C returns
// for user mode, the ledger's sequence counter is odd. For interrupts C
// switches the accounts, with the TSC as it was read here.
//
// The exit path restores the frame, which may hold invalid user values:
// selectors that do not exist raise an exception that is handled as the user
// program's own.

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

// First step of each entry that switches accounts: makes the sequence counter
// of the ledger (which stays in ebx) odd before it reads the TSC into edx:eax.
// So no CPU sees a later time in the old account. (`name`: struct switch_code.)
.macro LEDGER_ENTER name
    movl %fs:CPU_LEDGER, %ebx
    incl LEDGER_SEQ(%ebx)
.L\name\()_now:
    rdtsc
.endm

// Entry from user mode: if the TSC is before LEDGER_USER_SINCE, when the user
// account was opened, continues at `early`, which waits until then.
.macro LEDGER_CHECK early
    cmpl LEDGER_USER_SINCE(%ebx), %eax
    js \early
.endm

// From now on the thread's time is kernel time of the subsystem in ecx. The
// thread stays in esi.
.macro LEDGER_TO_KERNEL name
    movl %fs:CPU_THREAD, %esi
    movl %ecx, LEDGER_SUBSYSTEM(%ebx)
.L\name\()_change:
    addl %eax, THREAD_USER(%esi)
    adcl %edx, THREAD_USER + 4(%esi)
    subl %eax, LEDGER_IN(%ebx, %ecx, 8)
    sbbl %edx, LEDGER_IN + 4(%ebx, %ecx, 8)
    incl LEDGER_SEQ(%ebx)
.L\name\()_end:
.endm

// Completes ledger_leave_begin. From TSC + LEDGER_OUTSIDE on, the time is user
// time of the thread in esi: LEDGER_OUTSIDE cycles are what the rest of the exit
// and the next entry take, and stay charged to the kernel.
.macro LEDGER_TO_USER
    movl %fs:CPU_LEDGER, %ebx
    movl LEDGER_SUBSYSTEM(%ebx), %ecx
.Luser_now:
    rdtsc
    addl LEDGER_OUTSIDE(%ebx), %eax
    adcl $0, %edx
    movl %eax, LEDGER_USER_SINCE(%ebx)
    movl %edx, LEDGER_USER_SINCE + 4(%ebx)
.Luser_change:
    addl %eax, LEDGER_IN(%ebx, %ecx, 8)
    adcl %edx, LEDGER_IN + 4(%ebx, %ecx, 8)
    subl %eax, THREAD_USER(%esi)
    sbbl %edx, THREAD_USER + 4(%esi)
    addl $ASM_LEDGER_LEAVING, LEDGER_SEQ(%ebx)
.Luser_end:
.endm

    .cfi_sections .debug_frame
    .section .text.entry, "ax" // linker.ld: before the stubs of call tracing

// One 16-byte stub for each vector.
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
    testb $3, TRAPFRAME_CS(%esp)
    jz kernel_exception
    LEDGER_ENTER exception
    LEDGER_CHECK early_exception
.Lexception_checked:
    movl TRAPFRAME_VECTOR(%esp), %ecx
    movzbl trap_subsystems(%ecx), %ecx
    LEDGER_TO_KERNEL exception
    movl %esp, %eax
    call trap_user_exception
    jmp to_user

    .balign 16
    .type kernel_exception, @function
kernel_exception:
    movl %esp, %eax
    call trap_kernel_exception
    jmp trap_return

    .balign 16
    .type interrupt_common, @function
interrupt_common:
    SAVE_REGISTERS
    LEDGER_ENTER interrupt
    movl %esp, %ecx
    call trap_interrupt
    testb $3, TRAPFRAME_CS(%esp)
    jz trap_return
    movl %fs:CPU_THREAD, %esi
    jmp to_user

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
    LEDGER_ENTER syscall
    LEDGER_CHECK early_syscall
.Lsyscall_checked:
    movl TRAPFRAME_VECTOR(%esp), %edi
    cmpl $ASM_LINUX_CALLS, %edi
    jae strobe_syscall
    movzbl syscall_linux_calls(%edi), %edi
.Lsyscall_known:
    movl syscall_family(, %edi, 4), %ecx
    LEDGER_TO_KERNEL syscall
    movl %esp, %eax
    movl %edi, %edx
    call trap_syscall
to_user:
    LEDGER_TO_USER
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
// Drops the frame except for IRET's part, which was about to be popped or was
// refused: the exception is as if the user program's next instruction had
// raised it.
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

early_exception:
    movl %ebx, %ecx
    call ledger_await_user
    jmp .Lexception_checked

early_syscall:
    movl %ebx, %ecx
    call ledger_await_user
    jmp .Lsyscall_checked

strobe_syscall:
    subl $ASM_STROBE_FIRST, %edi
    cmpl $ASM_STROBE_CALLS, %edi
    jae 1f
    movzbl syscall_strobe_calls(%edi), %edi
    jmp .Lsyscall_known
1:  xorl %edi, %edi // CALL_unknown
    jmp .Lsyscall_known

// From trap_stubs to here the frame is being built or being taken down.
    .global trap_code_end
trap_code_end:

// struct switch_code (nmi.c); arch/trap.h: SWITCHING_TO_KERNEL, ..._USER.
    .section set_ledger_switches, "a"
    .long .Lexception_now, .Lexception_change, .Lexception_end, 1
    .long .Lsyscall_now, .Lsyscall_change, .Lsyscall_end, 1
    .long .Luser_now, .Luser_change, .Luser_end, 2

    .text

// enter_user(frame): returns to user mode by `frame`, after trap_leave.
    .balign 16
    .global enter_user
    .type enter_user, @function
enter_user:
    movl %eax, %esp
    movl TRAPFRAME_EBP(%esp), %ebp // a sample in to_user uses it as user ebp
    movl %fs:CPU_THREAD, %esi
    jmp to_user

// A separate task: nothing is known of the stack that was in use.
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

// switch_stack returns to here in a new thread: thread.c's struct new_stack.
    .global thread_begin
    .type thread_begin, @function
thread_begin:
    call sched_switch_finished
    sti
    popl %edx // entry
    popl %eax // its argument
    xorl %ebp, %ebp
    pushl $0 // return address: none
    jmp *%edx

// The same for a fork's child, which returns to user mode by its trap frame.
    .global fork_child_begin
    .type fork_child_begin, @function
fork_child_begin:
    call sched_switch_finished
    call fork_child_return
    hlt

    .section .note.GNU-stack, "", @progbits
