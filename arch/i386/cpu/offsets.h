// Constants for assembly files. init.c asserts that they match the C ones.
#pragma once

#define ASM_KERNEL_BASE 0xc0000000
#define ASM_DIRECT_MAP_MAX 0x30000000
#define ASM_IMAGE_PADDR 0x400000
#define ASM_TEXT_LINKED (ASM_KERNEL_BASE + ASM_IMAGE_PADDR + 0x1000)
#define ASM_IMAGE_ALIGN 0x400000 // a large page of both formats
#ifdef KASAN
#define ASM_KSTACK_SIZE 0x8000
#else
#define ASM_KSTACK_SIZE 0x4000
#endif

#define ASM_KERNEL_CS 0x60
#define ASM_KERNEL_DS 0x68
#define ASM_PERCPU_SEL 0xd8

#define ASM_DEBUG_EXIT_PORT 0xf4
#define ASM_DEBUG_EXIT_PANIC 0x3e

#define ASM_EFAULT 14

// struct cpu
#define CPU_SELF 0
#define CPU_THREAD 4
#define CPU_PREEMPT_COUNT 8
#define CPU_NEED_RESCHED 12
#define CPU_LEDGER 44
#define CPU_CALLS 48 // a struct call_cpu

// struct thread, struct ledger
#define THREAD_USER 8
#define LEDGER_SEQ 4
#define LEDGER_SUBSYSTEM 16
#define LEDGER_IN 24
#define LEDGER_USER_SINCE 104
#define LEDGER_OUTSIDE 112
#define ASM_LEDGER_LEAVING 0x80000001

// struct call_cpu, in struct cpu
#define CALLS_TOP (CPU_CALLS + 0)
#define CALLS_LIMIT (CPU_CALLS + 4)
#define CALLS_EVENT_LIMIT (CPU_CALLS + 8)
#define CALLS_CLOCK (CPU_CALLS + 12)
#define CALLS_ARCS (CPU_CALLS + 20)
#define CALLS_ARC_MASK (CPU_CALLS + 24)
#define CALLS_BUCKETS (CPU_CALLS + 28)
#define CALLS_BUCKET_MASK (CPU_CALLS + 32)
#define CALLS_TOO_DEEP (CPU_CALLS + 36)
#define CALLS_RING (CPU_CALLS + 44)
#define CALLS_PLACE (CPU_CALLS + 48)

// struct call_frame, struct call_node, struct call_arc
#define FRAME_MARK 0
#define FRAME_BACK 4
#define FRAME_NODE 8
#define FRAME_FUNCTION 8
#define FRAME_START 12
#define FRAME_SIZE 20
#define NODE_FUNCTION 0
#define NODE_LAST 4
#define NODE_CALLS 8
#define NODE_OWN 16
#define NODE_TRACING 24
#define NODE_LONGEST 32
#define NODE_SHORTEST 40
#define NODE_PARENT 44
#define NODE_NEXT 48
#define ARC_FROM 0
#define ARC_TO 4
#define ARC_COUNT 8

// struct trace_place, and the records of trace_enter, trace_leave, trace_call
#define ASM_TEXT_SITE 5
#define PLACE_AT 0
#define PLACE_LIMIT 4
#define PLACE_EPOCH 8
#define ASM_TRACE_TIME_BITS 21
#define ASM_TRACE_TIME_SHIFT 11
#define ENTRY_BYTES 12
#define ENTRY_FUNCTION 4
#define ENTRY_MARK 8
#define ENTRY_HEAD (59 * 32 + ENTRY_BYTES / 4)
#define EXIT_BYTES 16
#define EXIT_FUNCTION 4
#define EXIT_CYCLES 8
#define EXIT_HEAD (60 * 32 + EXIT_BYTES / 4)
#define CALL_BYTES 12
#define CALL_FUNCTION 4
#define CALL_CALLER 8
#define CALL_HEAD (61 * 32 + CALL_BYTES / 4)

// struct trapframe
#define TRAPFRAME_EBP 20
#define TRAPFRAME_VECTOR 40
#define TRAPFRAME_CS 52

#define ASM_LINUX_CALLS 512
#define ASM_STROBE_FIRST 1000
#define ASM_STROBE_CALLS 128

// Control registers (SDM vol. 3, 2.5).
#define ASM_CR0_PE 0x00000001
#define ASM_CR0_MP 0x00000002
#define ASM_CR0_EM 0x00000004
#define ASM_CR0_TS 0x00000008
#define ASM_CR0_NE 0x00000020
#define ASM_CR0_WP 0x00010000
#define ASM_CR0_AM 0x00040000
#define ASM_CR0_NW 0x20000000
#define ASM_CR0_CD 0x40000000
#define ASM_CR0_PG 0x80000000

#define ASM_CR4_PSE 0x00000010
#define ASM_CR4_PAE 0x00000020
#define ASM_CR4_MCE 0x00000040
#define ASM_CR4_PGE 0x00000080
#define ASM_CR4_OSFXSR 0x00000200
#define ASM_CR4_OSXMMEXCPT 0x00000400
#define ASM_CR4_UMIP 0x00000800
#define ASM_CR4_SMEP 0x00100000
#define ASM_CR4_SMAP 0x00200000

#define ASM_MSR_EFER 0xc0000080
#define ASM_EFER_NXE 0x800

// The local APIC's id (SDM vol. 3, 11.4.4, 11.4.6, 11.12.1.2).
#define ASM_MSR_APIC_BASE 0x1b
#define ASM_APIC_BASE_X2APIC 0x400
#define ASM_APIC_BASE_LOW 0xfffff000 // its address, as far as it is here
#define ASM_MSR_X2APIC_ID 0x802
#define ASM_LAPIC_ID 0x20
#define ASM_XAPIC_ID_MAX 0xfe // 0xff is all CPUs
#define ASM_LEAF_TOPOLOGY 0xb
