// Last branch records in call-stack mode, of user code only.
//
// Sources: Intel SDM vol. 3B, "LBR Stack and Intel 64 Processors" (17.4.8.1:
// outside of 64-bit mode the upper 32 bits of an address are 0; flags, where
// the format has them, are above it), "Monitoring Branches, Exceptions, and
// Interrupts" (a debug exception clears IA32_DEBUGCTL.LBR), "Filtering of Last
// Branch Records" (MSR_LBR_SELECT, TOS), and "Last Branch, Call Stack,
// Interrupt, and Exception Recording for Processors based on" the Haswell
// (call-stack mode: the bits that it needs; a return takes the last record out
// of the registers) and Skylake Microarchitecture (32 entries, MSR_LBR_INFO; a
// C-state deeper than C1 may clear the records). Architectural registers: SDM
// vol. 3B, "Last Branch Records", and vol. 2A, CPUID leaf 1CH.
//
// The kernel's branches are filtered out, so the stack is that of the moment at
// which the kernel was entered, in NMIs, too: it needs not be frozen. It must
// not be: with IA32_DEBUGCTL.FREEZE_LBRS_ON_PMI, calls and returns near a PMI
// move TOS once too often (known from Linux's driver). Far branches (system
// calls, IRET) and jumps are filtered out as that mode demands. CPUs without
// user mode filter or call-stack mode are not used.
//
// A call of the next instruction (`call 1f; 1: pop %eax`: code finds out where
// it is) has no return. The CPU records it, and the function's return then
// takes it out instead of the function's call. It is left out where callers are
// listed (Linux's driver does that, too), so the chain is right as long as the
// function runs; afterwards the function's call stays behind.
//
// With registers by model an entry is valid from the top of the stack (TOS)
// down to the first that is 0: empty entries are written as 0, and the CPU
// clears what it takes out (also said by Intel's patent US 10261792). With
// architectural ones the CPU does both, and entry 0 is the innermost.

#include "arch/i386/pmu/lbr.h"
#include "arch/i386/pmu/registers.h"

enum { EAX, EBX, ECX, EDX };

#define FAMILY_6 6u
#define LEAF_7_EDX_ARCH_LBR (1u << 19)
#define LEAF_LBR 0x1cu
#define LBR_EBX_CPL (1u << 0)    // filter by user and kernel mode
#define LBR_EBX_BRANCH (1u << 1) // filter by kind of branch
#define LBR_EBX_CALLS (1u << 2)  // call-stack mode
#define LBR_DEPTH_STEP 8u

#define MSR_LBR_SELECT 0x1c8u
#define MSR_LASTBRANCH_TOS 0x1c9u
#define MSR_LASTBRANCH_FROM 0x680u
#define MSR_LASTBRANCH_TO 0x6c0u
#define MSR_LBR_INFO 0xdc0u
#define DEBUGCTL_LBR (1ull << 0)
#define DEBUGCTL_FREEZE_LBRS (1ull << 11)
#define PERF_CAP_LBR_FORMAT 0x3fu
#define LBR_FORMAT_INFO 5u  // flags and cycles in MSR_LBR_INFO
#define LBR_FORMAT_INFO2 7u // the same without TSX; no format above is known

// MSR_LBR_SELECT: a bit that is set leaves out that kind, except for the last.
#define SELECT_NO_KERNEL (1u << 0)
#define SELECT_NO_JCC (1u << 2)
#define SELECT_NO_IND_JMP (1u << 6)
#define SELECT_NO_REL_JMP (1u << 7)
#define SELECT_NO_FAR (1u << 8)
#define SELECT_CALL_STACK (1u << 9)
#define SELECT_USER_CALLS                                   \
    (SELECT_NO_KERNEL | SELECT_NO_JCC | SELECT_NO_IND_JMP | \
     SELECT_NO_REL_JMP | SELECT_NO_FAR | SELECT_CALL_STACK)

#define CALL_OPCODE 0xe8u // followed by a displacement of 32 bits
#define CALL_BYTES 5u

#define MSR_ARCH_LBR_CTL 0x14ceu
#define MSR_ARCH_LBR_DEPTH 0x14cfu // a write empties the stack
#define MSR_ARCH_LBR_INFO 0x1200u
#define MSR_ARCH_LBR_FROM 0x1500u
#define MSR_ARCH_LBR_TO 0x1600u
// IA32_LBR_CTL: a bit that is set takes in that kind.
#define ARCH_LBR_EN (1u << 0)
#define ARCH_LBR_USER (1u << 2)
#define ARCH_LBR_CALL_STACK (1u << 3)
#define ARCH_LBR_REL_CALL (1u << 19)
#define ARCH_LBR_IND_CALL (1u << 20)
#define ARCH_LBR_RET (1u << 21)
#define ARCH_LBR_USER_CALLS                                                  \
    (ARCH_LBR_EN | ARCH_LBR_USER | ARCH_LBR_CALL_STACK | ARCH_LBR_REL_CALL | \
     ARCH_LBR_IND_CALL | ARCH_LBR_RET)

#define NO_CALL_STACK "no call-stack branch records (Intel, from Haswell on)"

// --- detection --------------------------------------------------------------

// Models with call-stack mode and registers by model. The SDM names some in the
// sections above; Linux uses this mode on all of these.
static u32 depth_of_model(u32 model)
{
    static const u8 of_16[] = { 0x3c, 0x3f, 0x45, 0x46,   // Haswell
                                0x3d, 0x47, 0x4f, 0x56 }; // Broadwell
    static const u8 of_32[] = {
        0x4e, 0x5e, 0x55, 0x8e, 0x9e, 0xa5, 0xa6, // Skylake to Comet Lake
        0x7d, 0x7e, 0x6a, 0x6c, 0x8c, 0x8d, 0xa7, // Ice, Tiger, Rocket Lake
        0x5c, 0x5f, 0x7a, 0x86, 0x96, 0x9c,       // Goldmont (Plus), Tremont
    };
    for (u32 i = 0; i < ARRAY_SIZE(of_16); i++) {
        if (of_16[i] == model)
            return 16;
    }
    for (u32 i = 0; i < ARRAY_SIZE(of_32); i++) {
        if (of_32[i] == model)
            return 32;
    }
    return 0;
}

static const char *describe_architectural(struct lbr *l)
{
    const u32 needed = LBR_EBX_CPL | LBR_EBX_BRANCH | LBR_EBX_CALLS;
    u32 r[4] = { 0 };
    l->io->cpuid(LEAF_LBR, 0, r);
    u32 depths = r[EAX] & 0xf; // 8, 16, 24, 32 entries
    if ((r[EBX] & needed) != needed || !depths)
        return "no call-stack mode of branch records (CPUID leaf 1CH)";
    l->kind = LBR_ARCHITECTURAL;
    l->depth = LBR_DEPTH_STEP * (32 - (u32)__builtin_clz(depths));
    l->from = MSR_ARCH_LBR_FROM;
    l->to = MSR_ARCH_LBR_TO;
    l->info = MSR_ARCH_LBR_INFO;
    return NULL;
}

static const char *describe_by_model(struct lbr *l, u32 signature)
{
    u64 capabilities = 0;
    u32 family = signature >> 8 & 0xf;
    u32 model = (signature >> 4 & 0xf) | (signature >> 12 & 0xf0);
    l->depth = family == FAMILY_6 ? depth_of_model(model) : 0;
    if (!l->depth)
        return NO_CALL_STACK;
    bool read = l->io->read(MSR_PERF_CAPABILITIES, &capabilities);
    u32 format = (u32)capabilities & PERF_CAP_LBR_FORMAT;
    if (!read || format > LBR_FORMAT_INFO2)
        return "the format of its branch records is not known";
    bool info = format == LBR_FORMAT_INFO || format == LBR_FORMAT_INFO2;
    l->kind = LBR_BY_MODEL;
    l->from = MSR_LASTBRANCH_FROM;
    l->to = MSR_LASTBRANCH_TO;
    l->info = info ? MSR_LBR_INFO : 0;
    return NULL;
}

static const char *describe(struct lbr *l)
{
    u32 r[4] = { 0 }, leaf_7[4] = { 0 };
    l->io->cpuid(0, 0, r);
    u32 max = r[EAX];
    if (r[EBX] != 0x756e6547) // "Genu"
        return NO_CALL_STACK;
    l->io->cpuid(1, 0, r);
    if (max >= 7)
        l->io->cpuid(7, 0, leaf_7);
    if (max >= LEAF_LBR && leaf_7[EDX] & LEAF_7_EDX_ARCH_LBR)
        return describe_architectural(l);
    return describe_by_model(l, r[EAX]);
}

// The register keeps a user address, and is 0 afterwards.
static bool keeps(const struct lbr *l, u32 msr)
{
    const u64 probe = 0x8048123;
    u64 value = 0;
    bool kept =
        l->io->write(msr, probe) && l->io->read(msr, &value) && value == probe;
    return l->io->write(msr, 0) && kept;
}

static u32 control_msr(const struct lbr *l)
{
    return l->kind == LBR_ARCHITECTURAL ? MSR_ARCH_LBR_CTL : MSR_LBR_SELECT;
}

// A hypervisor may hide the registers, or ignore what is written.
static const char *try_registers(const struct lbr *l)
{
    bool architectural = l->kind == LBR_ARCHITECTURAL;
    u64 wanted =
        architectural ? ARCH_LBR_USER_CALLS & ~ARCH_LBR_EN : SELECT_USER_CALLS;
    u64 control = 0, before = 0;
    if (!l->io->read(control_msr(l), &before) ||
        (architectural && !l->io->write(MSR_ARCH_LBR_DEPTH, l->depth)))
        return "the registers of its branch records fault";
    if (!l->io->write(control_msr(l), wanted) ||
        !l->io->read(control_msr(l), &control) || control != wanted ||
        !keeps(l, l->from) || !keeps(l, l->to + l->depth - 1))
        return "the registers of its branch records ignore writes";
    l->io->write(control_msr(l), before);
    return NULL;
}

const char *lbr_detect(struct lbr *l, const struct pmu_io *io)
{
    *l = (struct lbr){ .io = io };
    const char *why_not = describe(l);
    if (why_not)
        return why_not;
    if (lbr_records(l))
        return "its branch records are in use by the firmware";
    return try_registers(l);
}

// --- recording --------------------------------------------------------------

NOTRACE bool lbr_records(const struct lbr *l)
{
    u64 value = 0;
    if (l->kind == LBR_ARCHITECTURAL)
        return l->io->read(MSR_ARCH_LBR_CTL, &value) && value & ARCH_LBR_EN;
    return l->io->read(MSR_DEBUGCTL, &value) && value & DEBUGCTL_LBR;
}

static void set_debugctl(const struct lbr *l, u64 clear, u64 set)
{
    u64 value = 0;
    if (l->io->read(MSR_DEBUGCTL, &value) && ((value & clear) || set))
        l->io->write(MSR_DEBUGCTL, (value & ~clear) | set);
}

void lbr_begin(const struct lbr *l)
{
    lbr_replace(l, &(struct lbr_stack){ 0 });
    if (l->kind == LBR_ARCHITECTURAL) {
        set_debugctl(l, DEBUGCTL_FREEZE_LBRS, 0);
        l->io->write(MSR_ARCH_LBR_CTL, ARCH_LBR_USER_CALLS);
    } else {
        l->io->write(MSR_LBR_SELECT, SELECT_USER_CALLS);
        set_debugctl(l, DEBUGCTL_FREEZE_LBRS, DEBUGCTL_LBR);
    }
}

void lbr_end(const struct lbr *l)
{
    if (l->kind == LBR_ARCHITECTURAL) {
        l->io->write(MSR_ARCH_LBR_CTL, 0);
    } else {
        set_debugctl(l, DEBUGCTL_LBR, 0);
        l->io->write(MSR_LBR_SELECT, 0);
    }
}

// The register index of the entry `n` calls out from the innermost one.
static NOTRACE u32 index_of(const struct lbr *l, u32 top, u32 n)
{
    return l->kind == LBR_ARCHITECTURAL ? n : (top - n) & (l->depth - 1);
}

static NOTRACE u32 top_of(const struct lbr *l)
{
    u64 top = 0;
    if (l->kind == LBR_BY_MODEL)
        l->io->read(MSR_LASTBRANCH_TOS, &top);
    return (u32)top;
}

static NOTRACE u32 address_in(const struct lbr *l, u32 msr)
{
    u64 value = 0;
    l->io->read(msr, &value);
    return (u32)value;
}

// The call instruction of the entry `n` calls out; 0: there is none.
static NOTRACE u32 caller(const struct lbr *l, u32 top, u32 n)
{
    return n < l->depth ? address_in(l, l->from + index_of(l, top, n)) : 0;
}

static NOTRACE bool calls_next(const struct lbr_code *code, u32 from)
{
    u8 byte;
    if (!code->read(code->arg, from, &byte) || byte != CALL_OPCODE)
        return false;
    for (u32 i = 1; i < CALL_BYTES; i++) {
        if (!code->read(code->arg, from + i, &byte) || byte)
            return false;
    }
    return true;
}

NOTRACE u32 lbr_list(const struct lbr *l, const struct lbr_code *code, u32 *out,
                     u32 max)
{
    u32 top = top_of(l), count = 0, from;
    for (u32 n = 0; count < max && (from = caller(l, top, n)); n++) {
        if (!calls_next(code, from))
            out[count++] = from + 1;
    }
    return count;
}

void lbr_store(const struct lbr *l, struct lbr_stack *out)
{
    u32 top = top_of(l), n = 0, froms[LBR_DEPTH_MAX], from;
    while (n < LBR_DEPTH_MAX && (from = caller(l, top, n)))
        froms[n++] = from;
    out->count = n;
    for (u32 i = 0; i < n; i++) {
        out->from[n - 1 - i] = froms[i];
        out->to[n - 1 - i] = address_in(l, l->to + index_of(l, top, i));
    }
}

// Neither is recorded meanwhile: the kernel runs.
void lbr_replace(const struct lbr *l, const struct lbr_stack *in)
{
    u32 count = MIN(in->count, l->depth), top = count ? count - 1 : 0;
    u32 skipped = in->count - count; // the outermost, if it comes from a CPU
                                     // with more entries
    if (l->kind == LBR_ARCHITECTURAL)
        l->io->write(MSR_ARCH_LBR_DEPTH, l->depth);
    for (u32 n = 0; n < l->depth; n++) {
        u32 at = index_of(l, top, n);
        bool used = n < count;
        if (!used && l->kind == LBR_ARCHITECTURAL)
            break; // empty already
        u32 from = used ? in->from[skipped + count - 1 - n] : 0;
        u32 to = used ? in->to[skipped + count - 1 - n] : 0;
        l->io->write(l->from + at, from);
        l->io->write(l->to + at, to);
        if (l->info)
            l->io->write(l->info + at, 0);
    }
    if (l->kind == LBR_BY_MODEL)
        l->io->write(MSR_LASTBRANCH_TOS, top);
}
