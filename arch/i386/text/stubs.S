// The stubs of call tracing (arch/call_trace.h).
//
// A patched function has called trace_arc, trace_path, trace_enter or trace_call as
// its first instruction, so the stub's return address is in the function (the address
// behind its site, by which it is known here) and the function's own return
// address is above it. All registers are arguments, or results, of somebody:
// none is changed.
//
// Between the two RDTSC of trace_path and trace_exit no account of a function
// is open: this time is the tracing's. What is outside of them is a constant
// number of instructions.
//
// Call frame information covers each instruction, for the unwinder.

#include "arch/i386/cpu/asm.inc"

.macro STUB name
    .balign 16
    .global \name
    .type \name, @function
\name:
    .cfi_startproc
.endm
.macro STUB_END name
    .cfi_endproc
    .size \name, . - \name
.endm

.macro SAVE_FLAGS
    pushfl
    .cfi_adjust_cfa_offset 4
    cli
.endm
.macro SAVE_THREE
    PUSH %eax
    PUSH %edx
    PUSH %ecx
    SAVE_FLAGS
.endm
.macro SAVE_FIVE
    PUSH %eax
    PUSH %edx
    PUSH %ecx
    PUSH %esi
    PUSH %edi
    SAVE_FLAGS
.endm
.macro RETURN_THREE more:vararg
    popfl
    .cfi_adjust_cfa_offset -4
    .irp register, \more %ecx, %edx, %eax
    POP \register
    .endr
    ret
.endm
.macro RETURN_FIVE
    RETURN_THREE %edi, %esi,
.endm

// The 64-bit sum at `low`, of a register if there is one, changes by edx:eax.
.macro ADD64 low, register
    addl %eax, \low\register
    adcl %edx, \low + 4\register
.endm
.macro SUB64 low, register
    subl %eax, \low\register
    sbbl %edx, \low + 4\register
.endm

// The frame esi begins at the thread's own time.
.macro START_FRAME
    movl %fs:CALLS_CLOCK, %eax
    movl %eax, FRAME_START(%esi)
    movl %fs:CALLS_CLOCK + 4, %eax
    movl %eax, FRAME_START + 4(%esi)
.endm
// edx:eax, the time, goes on the thread's own clock, and becomes what the frame
// took.
.macro END_FRAME
    addl %fs:CALLS_CLOCK, %eax
    adcl %fs:CALLS_CLOCK + 4, %edx
    movl %eax, %fs:CALLS_CLOCK
    movl %edx, %fs:CALLS_CLOCK + 4
    subl FRAME_START(%esi), %eax
    sbbl FRAME_START + 4(%esi), %edx
.endm
// The real return address, back on the stack; the frame is gone.
.macro POP_FRAME
    movl FRAME_BACK(%esi), %eax
    movl %eax, 24(%esp)
    subl $FRAME_SIZE, %esi
    movl %esi, %fs:CALLS_TOP
    rdtsc
.endm

// Reserves a record of the ring ecx, and has its address in edi: time and
// function of the frame esi go into it. The time is kept at `time`. Where a
// writer came in between, again; where there is no room: MAKE_ROOM.
.macro RESERVE stub, time, bytes
.L\stub\()_reserve:
    movl PLACE_AT(%ecx), %edi
    rdtsc
    movl %eax, \time(%esi)
    movl %edx, \time + 4(%esi)
    shrdl $ASM_TRACE_TIME_BITS, %edx, %eax
    leal \bytes(%edi), %edx
    cmpl %eax, PLACE_EPOCH(%ecx)
    jne .L\stub\()_make_room
    cmpl PLACE_LIMIT(%ecx), %edx
    ja .L\stub\()_make_room
    movl %edi, %eax
    cmpxchgl %edx, PLACE_AT(%ecx)
    jne .L\stub\()_reserve
    movl FRAME_FUNCTION(%esi), %eax
.endm
.macro MAKE_ROOM stub, time, bytes
.L\stub\()_make_room:
    movl %ecx, %eax
    movl $\bytes, %edx
    call trace_ring_make_room
    movl %fs:CALLS_RING, %ecx
    testb %al, %al
    jnz .L\stub\()_reserve
    movl \time(%esi), %eax // lost
    movl \time + 4(%esi), %edx
    ADD64 %fs:CALLS_CLOCK
    jmp .L\stub\()_recorded
.endm

    .cfi_sections .debug_frame
    .section .text.trace, "ax"

// What image_slide (arch/mmu.h) returns: records have linked addresses.
#define IMAGE_SLIDE (text_start - ASM_TEXT_LINKED)

// --- arcs -------------------------------------------------------------------

STUB trace_arc
    SAVE_THREE
    cmpl $0, %fs:CALLS_ARCS
    je .Larc_done
    movl 16(%esp), %eax // the function
    movl 20(%esp), %edx // the caller
    leal (%eax, %edx, 4), %ecx // kernel/trace/arcs.c: arc_place
    shll $2, %ecx
    andl %fs:CALLS_ARC_MASK, %ecx
    addl %fs:CALLS_ARCS, %ecx
    cmpl %edx, ARC_FROM(%ecx)
    jne .Lslow_arc
    cmpl %eax, ARC_TO(%ecx)
    jne .Lslow_arc
    addl $1, ARC_COUNT(%ecx)
    adcl $0, ARC_COUNT + 4(%ecx)
.Larc_done:
    RETURN_THREE
    PUSHED_HERE 4
.Lslow_arc:
    call call_trace_slow_arc
    jmp .Larc_done
STUB_END trace_arc

// --- call paths -------------------------------------------------------------

// On the stack, from esp: flags, edi, esi, ecx, edx, eax, the function, and its
// return address, at esp + CALL_MARK.
#define FUNCTION 24
#define RETURN_ADDRESS 28

STUB trace_path
    SAVE_FIVE
    rdtsc
.Lpath_closed:
    movl %fs:CALLS_TOP, %esi // the caller's frame
    cmpl FRAME_MARK(%esi), %esp
    jae .Lnot_nested
.Lnested:
    cmpl %fs:CALLS_LIMIT, %esi
    jae .Lno_room
    movl FRAME_NODE(%esi), %edi // the caller's node
    ADD64 NODE_OWN, (%edi)
    SUB64 NODE_TRACING, (%edi)
    ADD64 %fs:CALLS_CLOCK
    movl FUNCTION(%esp), %eax
    movl NODE_LAST(%edi), %ecx
    cmpl %eax, NODE_FUNCTION(%ecx)
    jne .Lfind
.Lfound: // the function's node: ecx
    addl $1, NODE_CALLS(%ecx)
    adcl $0, NODE_CALLS + 4(%ecx)
    addl $FRAME_SIZE, %esi
    movl %esp, FRAME_MARK(%esi)
    movl %ecx, FRAME_NODE(%esi)
    movl RETURN_ADDRESS(%esp), %eax
    movl %eax, FRAME_BACK(%esi)
    movl %esi, %fs:CALLS_TOP // complete, for an NMI that unwinds
    movl $trace_exit, RETURN_ADDRESS(%esp)
    START_FRAME
    rdtsc
.Lpath_opened:
    SUB64 NODE_OWN, (%ecx)
    ADD64 NODE_TRACING, (%edi)
    SUB64 %fs:CALLS_CLOCK
.Lpath_done:
    RETURN_FIVE

.Lpath_rare:
    PUSHED_HERE 6
// The innermost frame is at or below this one: either a function that was left
// without a return, or one that jumped to this one (a tail call).
.Lnot_nested:
    jne 1f
    cmpl $trace_exit, RETURN_ADDRESS(%esp)
    je .Lnested
1:  movl %esp, %ecx
    PUSH %edx
    PUSH %eax
    call call_trace_drop_stale
    POP %eax
    POP %edx
    movl %fs:CALLS_TOP, %esi
    jmp .Lnested

.Lno_room:
    cmpl $0, %fs:CALLS_LIMIT
    je .Lpath_done
    addl $1, %fs:CALLS_TOO_DEEP
    adcl $0, %fs:CALLS_TOO_DEEP + 4
    jmp .Lpath_done

// The node of the function eax, child of edi: paths.c's bucket.
.Lfind:
    leal (%edi, %eax, 2), %edx
    shrl $1, %edx
    andl %fs:CALLS_BUCKET_MASK, %edx
    addl %fs:CALLS_BUCKETS, %edx
    movl (%edx), %ecx
1:  testl %ecx, %ecx
    jz .Lnew
    cmpl %eax, NODE_FUNCTION(%ecx)
    jne 2f
    cmpl %edi, NODE_PARENT(%ecx)
    jne 2f
    movl %ecx, NODE_LAST(%edi)
    jmp .Lfound
2:  movl NODE_NEXT(%ecx), %ecx
    jmp 1b

.Lnew:
    movl %eax, %edx
    movl %edi, %eax
    call call_trace_new_node
    movl %eax, %ecx
    testl %eax, %eax
    jnz .Lfound
    rdtsc
    SUB64 NODE_OWN, (%edi)
    ADD64 NODE_TRACING, (%edi)
    SUB64 %fs:CALLS_CLOCK
    jmp .Lpath_done
STUB_END trace_path

// --- events -----------------------------------------------------------------

// The stack is as in trace_path. A record is reserved, filled and published as
// kernel/trace/record.h says; NMIs may write records between any two
// instructions.
STUB trace_enter
    SAVE_FIVE
    movl %fs:CALLS_TOP, %esi // the caller's frame
    cmpl FRAME_MARK(%esi), %esp
    jae .Lenter_not_nested
.Lenter_nested:
    cmpl %fs:CALLS_EVENT_LIMIT, %esi
    jae .Lenter_no_room
    addl $FRAME_SIZE, %esi
    movl %esp, FRAME_MARK(%esi)
    movl FUNCTION(%esp), %eax
    subl $(ASM_TEXT_SITE + IMAGE_SLIDE), %eax
    movl %eax, FRAME_FUNCTION(%esi)
    movl RETURN_ADDRESS(%esp), %eax
    movl %eax, FRAME_BACK(%esi)
    movl %esi, %fs:CALLS_TOP // complete, for an NMI that unwinds
    movl $trace_leave, RETURN_ADDRESS(%esp)
    movl %fs:CALLS_RING, %ecx
    RESERVE enter, FRAME_START, ENTRY_BYTES
    movl %eax, ENTRY_FUNCTION(%edi)
    movl %esp, ENTRY_MARK(%edi)
    movl FRAME_START(%esi), %eax
    movl FRAME_START + 4(%esi), %edx
    ADD64 %fs:CALLS_CLOCK
    shll $ASM_TRACE_TIME_SHIFT, %eax
    orl $ENTRY_HEAD, %eax
    movl %eax, (%edi)
.Lenter_recorded:
    START_FRAME
    rdtsc
    SUB64 %fs:CALLS_CLOCK
.Lenter_done:
    RETURN_FIVE

    PUSHED_HERE 6
.Lenter_not_nested: // as in trace_path
    jne 1f
    cmpl $trace_leave, RETURN_ADDRESS(%esp)
    je .Lenter_nested
1:  movl %esp, %ecx
    call call_trace_drop_stale // edx:eax, the time, is not used
    movl %fs:CALLS_TOP, %esi
    jmp .Lenter_nested

.Lenter_no_room:
    cmpl $0, %fs:CALLS_EVENT_LIMIT
    je .Lenter_done
    addl $1, %fs:CALLS_TOO_DEEP
    adcl $0, %fs:CALLS_TOO_DEEP + 4
    jmp .Lenter_done

    MAKE_ROOM enter, FRAME_START, ENTRY_BYTES
STUB_END trace_enter

// --- calls only -------------------------------------------------------------

// On the stack, from esp: a word, flags, ecx, edx, eax, the function, and its
// return address. The word is where the record would go, until the time is read,
// and then the record's head, which is popped into its place: that publishes it.
//
// The place is read before the time: if an NMI has written a record in between,
// the exchange fails, so times ascend.
#define CALLED 20
#define CALLED_FROM 24

STUB trace_call
    SAVE_THREE
    movl %fs:CALLS_PLACE, %ecx
.Lcall_reserve:
    PUSH PLACE_AT(%ecx)
    rdtsc
    shldl $ASM_TRACE_TIME_SHIFT, %eax, %edx
    cmpl %edx, PLACE_EPOCH(%ecx)
    jne .Lcall_make_room
    shll $(ASM_TRACE_TIME_SHIFT - 3), %eax
    leal CALL_HEAD(, %eax, 8), %edx
    POP %eax
    PUSH %edx
    leal CALL_BYTES(%eax), %edx
    cmpl PLACE_LIMIT(%ecx), %edx
    ja .Lcall_make_room
    cmpxchgl %edx, PLACE_AT(%ecx)
    jne .Lcall_again
    movl CALLED(%esp), %edx
    subl $IMAGE_SLIDE, %edx
    movl %edx, CALL_FUNCTION(%eax)
    movl CALLED_FROM(%esp), %edx
    subl $IMAGE_SLIDE, %edx
    movl %edx, CALL_CALLER(%eax)
    POP (%eax)
.Lcall_done:
    RETURN_THREE

    PUSHED_HERE 5
.Lcall_again:
    POP %edx
    jmp .Lcall_reserve

    PUSHED_HERE 5
.Lcall_make_room:
    POP %edx
    cmpl $call_untraced, %ecx
    je .Lcall_done
    movl %ecx, %eax
    movl $CALL_BYTES, %edx
    call trace_ring_make_room
    movl %fs:CALLS_PLACE, %ecx
    testb %al, %al
    jnz .Lcall_reserve
    jmp .Lcall_done
STUB_END trace_call

// --- returns ----------------------------------------------------------------

// The return address of traced functions. On the stack, from esp: flags, edi,
// esi, ecx, edx, eax, and where the return address was.
STUB trace_exit
    pushl %eax // where the return address was; unwind.c knows this instruction
    SAVE_FIVE
    rdtsc
.Lexit_closed:
    movl %fs:CALLS_TOP, %esi
    leal 24 - RETURN_ADDRESS(%esp), %ecx
    cmpl FRAME_MARK(%esi), %ecx
    jne .Lodd
    movl FRAME_NODE(%esi), %edi
    ADD64 NODE_OWN, (%edi)
    movl FRAME_NODE - FRAME_SIZE(%esi), %ecx // the caller's node
    SUB64 NODE_TRACING, (%ecx)
    END_FRAME
    jnz .Llong
    cmpl NODE_LONGEST(%edi), %eax
    ja .Llongest
.Lnot_longest:
    cmpl NODE_SHORTEST(%edi), %eax
    jb .Lshortest
.Lcompared:
    POP_FRAME
.Lexit_opened:
    SUB64 NODE_OWN, (%ecx)
    ADD64 NODE_TRACING, (%ecx)
    SUB64 %fs:CALLS_CLOCK
.Lexit_done:
    RETURN_FIVE

.Lexit_rare:
    PUSHED_HERE 6
.Llongest:
    cmpl $0, NODE_LONGEST + 4(%edi)
    jne .Lnot_longest
    movl %eax, NODE_LONGEST(%edi)
    jmp .Lnot_longest

// 2^32 cycles or more.
.Llong:
    cmpl %edx, NODE_LONGEST + 4(%edi)
    ja .Lcompared
    jb 1f
    cmpl %eax, NODE_LONGEST(%edi)
    jae .Lcompared
1:  movl %eax, NODE_LONGEST(%edi)
    movl %edx, NODE_LONGEST + 4(%edi)
    jmp .Lcompared

.Lshortest:
    movl %eax, NODE_SHORTEST(%edi)
    jmp .Lcompared

.Lodd:
    call call_trace_odd_return
    movl %eax, 24(%esp)
    jmp .Lexit_done
STUB_END trace_exit

// Of trace_enter. The stack is as in trace_exit. The frame behind the innermost
// one is free: there the time is kept.
#define NOW (FRAME_SIZE + FRAME_START)

STUB trace_leave
    pushl %eax // unwind.c knows this instruction
    SAVE_FIVE
    movl %fs:CALLS_TOP, %esi
    leal 24 - RETURN_ADDRESS(%esp), %ecx
    cmpl FRAME_MARK(%esi), %ecx
    jne .Lleave_odd
    movl %fs:CALLS_RING, %ecx
    RESERVE leave, NOW, EXIT_BYTES
    movl %eax, EXIT_FUNCTION(%edi)
    movl NOW(%esi), %ecx
    movl NOW + 4(%esi), %edx
    movl %ecx, %eax
    shll $ASM_TRACE_TIME_SHIFT, %ecx
    orl $EXIT_HEAD, %ecx
    END_FRAME
    movl %eax, EXIT_CYCLES(%edi)
    movl %edx, EXIT_CYCLES + 4(%edi)
    movl %ecx, (%edi)
.Lleave_recorded:
    POP_FRAME
    SUB64 %fs:CALLS_CLOCK
.Lleave_done:
    RETURN_FIVE

    PUSHED_HERE 6
    MAKE_ROOM leave, NOW, EXIT_BYTES

.Lleave_odd:
    call call_trace_odd_return
    movl %eax, 24(%esp)
    jmp .Lleave_done
STUB_END trace_leave

    .global trace_code_end
trace_code_end:

// Code of trace_path and trace_exit in which the account of a function is open:
// pairs of the first address and the one behind it. Only pushes, pops and
// additions to 64-bit sums are there.
    .section .rodata.trace, "a"
    .balign 4
    .global trace_outside, trace_outside_end
trace_outside:
    .long trace_path, .Lpath_closed, .Lpath_opened, .Lpath_rare
    .long trace_exit, .Lexit_closed, .Lexit_opened, .Lexit_rare
trace_outside_end:

    .section .note.GNU-stack, "", @progbits
