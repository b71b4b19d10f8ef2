// Constants of C and assembly files: the numbers of system calls that entry.S
// knows; control registers, model-specific registers and the local APIC's.
#pragma once

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
