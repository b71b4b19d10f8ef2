// Registers of the performance monitoring units, with their manuals' names.
#pragma once

// Event select MSRs (SDM 18.2.1.1, IA32_PERFEVTSELx; P6: 18.22.1,
// PerfEvtSel0/1; APM 13.2.1, PERF_CTLx): bits 0-7 event, 8-15 unit mask, and
#define SELECT_USER (1u << 16)
#define SELECT_KERNEL (1u << 17)
#define SELECT_INT (1u << 20) // interrupt on overflow
#define SELECT_EN (1u << 22)  // P6: in PerfEvtSel0 only, for both counters
#define SELECT_INV (1u << 23) // count cycles with fewer events than the mask
#define SELECT_CMASK_SHIFT 24u
#define SELECT_EVENT 0xffu

// P6 family (SDM 18.22) and architectural (18.2).
#define MSR_PERFCTR0 0xc1u // IA32_PMC0
#define MSR_PERFEVTSEL0 0x186u
#define MSR_PERF_CAPABILITIES 0x345u
#define P6_WIDTH 40u
// PERFEVTSEL, PMC and A_PMC have numbers for this many counters; what follows
// are other registers (0CDH, 0CEH, 18EH on).
#define LEGACY_COUNTERS 8u

// Version 6 (SDM vol. 3B, "Architectural Performance Monitoring Version 6", and
// vol. 4, table 2-2: IA32_PMC_GPn_CTR, IA32_PMC_GPn_CFG_A, IA32_PMC_FXn_CTR):
// further numbers of the same registers; CTR takes the full width.
#define MSR_PMC_GP0_CTR 0x1900u
#define MSR_PMC_GP0_CFG_A 0x1901u
#define MSR_PMC_FX0_CTR 0x1980u
#define MSR_PMC_STEP 4u

// SDM 18.2.2: fixed-function counters; four control bits for each.
#define MSR_FIXED_CTR0 0x309u
#define MSR_FIXED_CTR_CTRL 0x38du
#define FIXED_KERNEL 1u
#define FIXED_USER 2u
#define FIXED_PMI 8u
#define FIXED_BITS 4u
#define FIXED_ADAPTIVE_SHIFT 32u // adaptive PEBS (SDM 18.9.2): not used here

#define MSR_GLOBAL_STATUS 0x38eu
#define MSR_GLOBAL_CTRL 0x38fu
#define MSR_GLOBAL_OVF_CTRL 0x390u // version 4 on: GLOBAL_STATUS_RESET
// Version 4 on (SDM 18.2.4.3), read-only: bits as in the status for counters
// that some agent has programmed, and one for their interrupt. (391H,
// GLOBAL_STATUS_SET, is for hypervisors.)
#define MSR_GLOBAL_INUSE 0x392u
#define INUSE_PMI (1ull << 63)
#define GLOBAL_FIXED_SHIFT 32u
#define STATUS_CTR_FRZ (1ull << 59) // version 4 on, and PerfMonV2: PMC freeze
#define STATUS_LBR_FRZ (1ull << 58)
#define STATUS_OVF_BUF (1ull << 62)
#define STATUS_COND_CHGD (1ull << 63)

#define MSR_TSX_FORCE_ABORT 0x10fu
#define RTM_FORCE_ABORT (1u << 0)

// SDM 17.4.1, IA32_DEBUGCTL; APM: DebugCtl.
#define MSR_DEBUGCTL 0x1d9u
#define DEBUGCTL_FREEZE_PERFMON (1u << 12)

// AMD (APM 13.2.1). Extended: PERF_CTLn, PERF_CTRn alternate.
#define MSR_K7_CTL0 0xc0010000u
#define MSR_K7_CTR0 0xc0010004u
#define MSR_EXT_CTL0 0xc0010200u
#define MSR_EXT_CTR0 0xc0010201u
#define MSR_AMD_GLOBAL_STATUS 0xc0000300u
#define MSR_AMD_GLOBAL_CTL 0xc0000301u
#define MSR_AMD_GLOBAL_STATUS_CLR 0xc0000302u
#define AMD_WIDTH 48u

#define AMD_K7 6u
#define AMD_K8 0xfu
#define AMD_10H 0x10u
#define AMD_BULLDOZER 0x15u
#define AMD_ZEN 0x17u
