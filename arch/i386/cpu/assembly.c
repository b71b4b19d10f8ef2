// Constants and offsets for assembly files: the lines of assembly.h, which the
// build takes from this file's object (Makefile). The object is in no kernel.

#include "arch/i386/boot/boot_fill.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/trampoline.h"
#include "arch/text.h"
#include "arch/thread.h"
#include "arch/trace_ring.h"
#include "kernel/base/errno.h"
#include "kernel/base/thread.h"
#include "kernel/time/ledger.h"
#include <strobe/abi.h>
#include <strobe/trace.h>

#define CONSTANT(name, value)                       \
    __asm__(".pushsection .assembly, \"a\"\n"       \
            ".ascii \"#define " #name " %c0\\n\"\n" \
            ".popsection"                           \
            :                                       \
            : "i"((u64)(u32)(value)));
#define OFFSET(name, type, member) CONSTANT(name, offsetof(struct type, member))
#define RECORD(name, type, id)                  \
    CONSTANT(name##_BYTES, sizeof(struct type)) \
    CONSTANT(name##_HEAD, TRACE_HEAD(0, id, sizeof(struct type) / 4))

void assembly_constants(void);
void assembly_constants(void)
{
    CONSTANT(ASM_KERNEL_BASE, KERNEL_BASE)
    CONSTANT(ASM_DIRECT_MAP_MAX, DIRECT_MAP_MAX)
    CONSTANT(ASM_IMAGE_PADDR, IMAGE_PADDR)
    CONSTANT(ASM_TEXT_LINKED, KERNEL_LOAD + PAGE_SIZE)
    CONSTANT(ASM_IMAGE_ALIGN, IMAGE_ALIGN)
    CONSTANT(ASM_KSTACK_SIZE, KSTACK_SIZE)
    CONSTANT(ASM_KERNEL_DS, KERNEL_DS)
    CONSTANT(ASM_PERCPU_SEL, PERCPU_SEL)
    CONSTANT(ASM_DEBUG_EXIT_PORT, DEBUG_EXIT_PORT)
    CONSTANT(ASM_DEBUG_EXIT_PANIC, DEBUG_EXIT_PANIC)
    CONSTANT(ASM_EFAULT, EFAULT)
    CONSTANT(ASM_TEXT_SITE, TEXT_SITE)
    CONSTANT(ASM_LEDGER_LEAVING, LEDGER_LEAVING)

    OFFSET(CPU_THREAD, cpu, thread)
    OFFSET(CPU_LEDGER, cpu, ledger)
    OFFSET(THREAD_USER, thread_base, user)
    OFFSET(LEDGER_SEQ, ledger, seq)
    OFFSET(LEDGER_SUBSYSTEM, ledger, subsystem)
    OFFSET(LEDGER_IN, ledger, in)
    OFFSET(LEDGER_USER_SINCE, ledger, user_since)
    OFFSET(LEDGER_OUTSIDE, ledger, outside)
    OFFSET(TRAPFRAME_EBP, trapframe, ebp)
    OFFSET(TRAPFRAME_VECTOR, trapframe, vector)
    OFFSET(TRAPFRAME_CS, trapframe, cs)

    OFFSET(CALLS_TOP, cpu, calls.top)
    OFFSET(CALLS_LIMIT, cpu, calls.limit)
    OFFSET(CALLS_EVENT_LIMIT, cpu, calls.event_limit)
    OFFSET(CALLS_CLOCK, cpu, calls.clock)
    OFFSET(CALLS_ARCS, cpu, calls.arcs)
    OFFSET(CALLS_ARC_MASK, cpu, calls.arc_mask)
    OFFSET(CALLS_BUCKETS, cpu, calls.buckets)
    OFFSET(CALLS_BUCKET_MASK, cpu, calls.bucket_mask)
    OFFSET(CALLS_TOO_DEEP, cpu, calls.too_deep)
    OFFSET(CALLS_RING, cpu, calls.ring)
    OFFSET(CALLS_PLACE, cpu, calls.place)
    CONSTANT(FRAME_SIZE, sizeof(struct call_frame))
    OFFSET(FRAME_MARK, call_frame, mark)
    OFFSET(FRAME_BACK, call_frame, back)
    OFFSET(FRAME_NODE, call_frame, node)
    OFFSET(FRAME_FUNCTION, call_frame, function)
    OFFSET(FRAME_START, call_frame, start)
    OFFSET(NODE_FUNCTION, call_node, function)
    OFFSET(NODE_LAST, call_node, last)
    OFFSET(NODE_CALLS, call_node, calls)
    OFFSET(NODE_OWN, call_node, own)
    OFFSET(NODE_TRACING, call_node, tracing)
    OFFSET(NODE_LONGEST, call_node, longest)
    OFFSET(NODE_SHORTEST, call_node, shortest)
    OFFSET(NODE_PARENT, call_node, parent)
    OFFSET(NODE_NEXT, call_node, next)
    _Static_assert(sizeof(struct call_arc) == 16, "stubs.S: a shift");
    OFFSET(ARC_FROM, call_arc, from)
    OFFSET(ARC_TO, call_arc, to)
    OFFSET(ARC_COUNT, call_arc, count)

    OFFSET(PLACE_AT, trace_place, at)
    OFFSET(PLACE_LIMIT, trace_place, limit)
    OFFSET(PLACE_EPOCH, trace_place, epoch)
    CONSTANT(ASM_TRACE_TIME_BITS, TRACE_TIME_BITS)
    CONSTANT(ASM_TRACE_TIME_SHIFT, 32 - TRACE_TIME_BITS)
    RECORD(ENTRY, trace_entry, TRACE_R_ENTRY)
    OFFSET(ENTRY_FUNCTION, trace_entry, function)
    OFFSET(ENTRY_MARK, trace_entry, mark)
    RECORD(EXIT, trace_return, TRACE_R_EXIT)
    OFFSET(EXIT_FUNCTION, trace_return, function)
    OFFSET(EXIT_CYCLES, trace_return, cycles)
    RECORD(CALL, trace_call, TRACE_R_CALL)
    OFFSET(CALL_FUNCTION, trace_call, function)
    OFFSET(CALL_CALLER, trace_call, caller)
    _Static_assert(TRACE_CALL_OFFSET == TEXT_SITE, "stubs.S: a call's return");

    CONSTANT(AP_SLOT_SIZE, sizeof(struct ap_slot))
    OFFSET(AP_ARRIVED, ap_slot, arrived)
    OFFSET(AP_APIC_ID, ap_slot, apic_id)
    OFFSET(AP_STACK, ap_slot, stack)
    OFFSET(AP_CPU, ap_slot, cpu)
    CONSTANT(ASM_TRAMPOLINE_SIZE, TRAMPOLINE_SIZE)
}
