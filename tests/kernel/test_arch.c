// CPUs: cross calls, NMIs, segments, the FPU, stack unwinding.

#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/irq/apic.h"
#include "arch/nmi.h"
#include "arch/trap.h"
#include "arch/unwind.h"
#include "kernel/debug/canary.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/thread.h"
#include "kernel/task/task.h"
#include "lib/format.h"
#include "lib/string.h"
#include "tests/kernel/test.h"

// --- other CPUs

#define ANSWER_INSTRUCTIONS 4000u

static struct cpu_set answered;
static u32 calls, misplaced; // counters

// Slowly: the caller must wait until it is done.
static void answer(void *arg)
{
    cpu_run_instructions(test_random() % ANSWER_INSTRUCTIONS);
    cpu_set_add_atomic(arg, this_cpu()->id);
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    if (irqs_enabled() || !this_cpu()->irq_depth)
        __atomic_fetch_add(&misplaced, 1, __ATOMIC_RELAXED);
}

// All CPUs but this one; its thread is not preempted.
static struct cpu_set other_cpus(void)
{
    struct cpu_set others = cpu_set_below(cpu_count);
    cpu_set_remove(&others, this_cpu()->id);
    return others;
}

static bool same(const struct cpu_set *a, const struct cpu_set *b)
{
    return !memcmp(a, b, sizeof(*a));
}

KERNEL_TEST(arch_calls_reach_every_cpu)
{
    preempt_disable();
    struct cpu_set others = other_cpus(), set = cpu_set_of(this_cpu()->id);
    calls = misplaced = 0;
    answered = CPU_SET_EMPTY;
    smp_call_others(answer, &answered);
    expect(same(&answered, &others));
    expect(calls == cpu_count - 1 && !misplaced);
    answered = CPU_SET_EMPTY;
    smp_call_set(&set, answer, &answered);
    expect(cpu_set_is_empty(&answered));
    preempt_enable();
}

// Any set of CPUs, with those that do not exist: exactly its members are
// called.
KERNEL_TEST(arch_calls_reach_any_set)
{
    for (u32 i = 0; i < test_rounds(200); i++) {
        struct cpu_set set = CPU_SET_EMPTY, called = CPU_SET_EMPTY;
        for (u32 n = test_random() % 8; n; n--)
            cpu_set_add(&set, test_random() % (cpu_set_words * 32));
        preempt_disable();
        smp_call_set(&set, answer, &called);
        struct cpu_set others = other_cpus();
        set = cpu_set_and(&set, &others);
        expect(same(&called, &set));
        preempt_enable();
    }
}

#define CALLERS 6u
#define ROUNDS 200u // on one CPU
static u32 callers_left, wrong_sets;

static void caller(void *arg UNUSED)
{
    for (u32 i = 0; i < test_rounds(ROUNDS); i++) {
        struct cpu_set called = CPU_SET_EMPTY;
        preempt_disable();
        struct cpu_set others = other_cpus();
        smp_call_others(answer, &called);
        if (!same(&called, &others))
            __atomic_fetch_add(&wrong_sets, 1, __ATOMIC_RELAXED);
        preempt_enable();
    }
    __atomic_fetch_sub(&callers_left, 1, __ATOMIC_RELEASE);
}

static void run_all(void (*fn)(void *), u32 n, u32 *left)
{
    *left = n;
    for (u32 i = 0; i < n; i++) {
        if (kthread_create("test", fn, (void *)i, NULL))
            panic("no memory for a test");
    }
    while (__atomic_load_n(left, __ATOMIC_ACQUIRE))
        thread_sleep_until(clock_now_ns() + NSEC_PER_MSEC,
                           WAIT_UNINTERRUPTIBLE);
}

KERNEL_TEST(arch_calls_from_all_sides)
{
    calls = misplaced = wrong_sets = 0;
    run_all(caller, CALLERS, &callers_left);
    expect(!wrong_sets && !misplaced);
    expect(calls == CALLERS * test_rounds(ROUNDS) * (cpu_count - 1));
}

// Each other CPU logs one unexpected NMI: nobody owns them.
KERNEL_TEST(arch_nmis_are_counted)
{
    u32 before[CPU_MAX];
    if (!apic_present || cpu_count == 1) {
        test_skip("one CPU alone");
        return;
    }
    log_printf("test: an NMI without an owner to each other CPU\n");
    preempt_disable();
    u32 own = this_cpu()->id, missing = 0;
    for (u32 i = 0; i < cpu_count; i++)
        before[i] = READ_ONCE(cpus[i]->arch->nmis);
    nmi_send_others();
    u64 deadline = clock_now_ns() + TEST_PATIENCE;
    do {
        missing = 0;
        for (u32 i = 0; i < cpu_count; i++)
            missing += i != own && READ_ONCE(cpus[i]->arch->nmis) == before[i];
        cpu_relax();
    } while (missing && clock_now_ns() < deadline);
    expect(!missing && cpus[own]->arch->nmis == before[own]);
    preempt_enable();
}

KERNEL_TEST(arch_cpus_know_themselves)
{
    for (u32 i = 0; i < cpu_count; i++) {
        expect(cpus[i]->self == cpus[i] && cpus[i]->id == i);
        expect(cpus[i]->online);
    }
    preempt_disable();
    expect(this_cpu() == cpus[this_cpu()->id]);
    expect(!apic_present || lapic_id() == this_cpu()->apic_id);
    preempt_enable();
}

// --- threads

KERNEL_TEST(arch_bad_segments_become_null)
{
    u32 before = read_gs();
    write_gs(0x4b); // RPL 3, but no descriptor
    expect(read_gs() == 0);
    write_gs(0xffff);
    expect(read_gs() == 0);
    write_gs(USER_DS);
    expect(read_gs() == USER_DS);
    write_gs(before);
}

#define FPU_THREADS 5u
static u32 fpu_left, fpu_errors;

// Kernel code does not use the FPU: this thread allocates it as the first FPU
// instruction of a user program would.
static void fpu_user(void *arg)
{
    u32 id = (u32)arg;
    u32 flags = irq_save();
    bool ok = fpu_first_use();
    irq_restore(flags);
    s32 value = (s32)(1000 + id), out = 0;
    u32 lanes[4] = { id, id + 1, id + 2, id + 3 }, back[4];
    if (ok) {
        __asm__ volatile("fildl %0" ::"m"(value));
        if (cpu_features.sse)
            __asm__ volatile("movups %0, %%xmm5" ::"m"(lanes));
    }
    for (u32 i = 0; ok && i < 300; i++) {
        if (i % 4 == id % 4)
            thread_sleep_until(clock_now_ns() + 20 * NSEC_PER_USEC,
                               WAIT_UNINTERRUPTIBLE);
        else
            sched_yield();
        __asm__ volatile("fistl %0" : "=m"(out));
        ok = out == value;
        if (cpu_features.sse) {
            __asm__ volatile("movups %%xmm5, %0" : "=m"(back));
            ok = ok && !memcmp(lanes, back, sizeof(lanes));
        }
    }
    if (!ok)
        __atomic_fetch_add(&fpu_errors, 1, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&fpu_left, 1, __ATOMIC_RELEASE);
}

KERNEL_TEST(arch_fpu_survives_switches)
{
    fpu_errors = 0;
    run_all(fpu_user, FPU_THREADS, &fpu_left);
    expect(!fpu_errors);
}

extern char text_start[]; // linker.ld

KERNEL_TEST(arch_backtrace_finds_the_caller)
{
    u32 pcs[8], offset, n = backtrace(frame_pointer(), pcs, 8);
    const char *name = n ? ksym_lookup(pcs[0], &offset) : NULL;
    expect(n >= 2 && name && !strcmp(name, "tests_run"));
    // Wild frame pointers yield no frame and do not fault.
    static const u32 wild[] = { 0,           1,          0xbffffffc,
                                0xffffffff,  0xfffffffc, KERNEL_BASE + 1,
                                VMAP_END - 8 };
    for (u32 i = 0; i < ARRAY_SIZE(wild); i++)
        expect(backtrace(wild[i], pcs, 8) == 0);
    u32 circle[2] = { (u32)circle, (u32)text_start };
    expect(backtrace((u32)circle, pcs, 8) == 1);
}

KERNEL_TEST(arch_canaries_are_of_this_boot)
{
    expect(__stack_chk_guard != CANARY_AT_START);
    expect(!(__stack_chk_guard & CANARY_TERMINATOR));
}

// --- frames

// A trap from kernel mode pushes neither esp nor ss: its frame may end at the
// end of the stack, before an unmapped page.
KERNEL_TEST(arch_unwind_reads_no_further_than_a_kernel_frame)
{
    u32 out[16];
    struct user_part part;
    char *page = vmap_alloc(1, PROT_R | PROT_W, FRAME_BUFFER);
    expect(page);
    struct trapframe *tf =
        (void *)(page + PAGE_SIZE - offsetof(struct trapframe, esp));
    memset(tf, 0, offsetof(struct trapframe, esp));
    tf->cs = KERNEL_CS;
    part.stack_words = 2048;
    expect(unwind_user_deep(tf, out, &part) == out);
    expect(part.depth == 0 && part.stack_words == 0);
    vmap_free(page, 1);
}

static NOINLINE void uses_aligned_stack(void)
{
    char line[64] __attribute__((aligned(64)));
    format(line, sizeof(line), "%u%u", 1u, 2u);
    __asm__ volatile("" : : "r"(line) : "memory");
}

// gcc aligns the stack before it sets up ebp's frame, and undoes it after.
KERNEL_TEST(arch_unwind_where_a_stack_is_aligned)
{
    u32 at = (u32)uses_aligned_stack, end = at + 64;
    while (at < end && kframe_kind(at) != KFRAME_BELOW_EDI)
        at++;
    if (at == end) {
        test_skip("this compiler does it otherwise");
        return;
    }
    struct {
        struct trapframe tf;
        u32 aligned[5], back, outer[2];
    } stack = { .back = (u32)uses_aligned_stack,
                .outer = { 0, (u32)vmap_alloc } };
    stack.tf.cs = KERNEL_CS;
    stack.tf.eip = at;
    stack.tf.edi = (u32)(&stack.back + 1);
    stack.tf.ebp = (u32)stack.outer;
    u32 pcs[8];
    bool cut;
    expect(unwind_kernel(&stack.tf, (u32)&stack.tf.esp, pcs, 8, &cut) == 3 &&
           !cut);
    expect(pcs[0] == linked_address(at) &&
           pcs[1] == linked_address(stack.back) &&
           pcs[2] == linked_address(stack.outer[1]));
}
