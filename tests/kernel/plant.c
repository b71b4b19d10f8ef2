// Planted bugs (kernel argument `plant=NAME`): each must be reported by its
// checker. They test the checkers, and the panics that every kernel has.
#include "arch/regs.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/base/tester.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/vfs.h"
#include "kernel/mm/aspace.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/mutex.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/task.h"
#include "kernel/time/callout.h"
#include "kernel/time/timecounter.h"
#include "kernel/time/timehands.h"
#include "kernel/trace/patch.h"
#include "lib/string.h"

#define DEBUG_DEVICES 10
#define PLANT_MINOR 241

// Hides the planted bugs from the compiler's analysis.
static volatile u32 opaque_zero;

// --- ubsan ------------------------------------------------------------------

static void shift_too_far(void)
{
    u32 by = 40 + opaque_zero;
    log_printf("plant: %u\n", 1u << by);
}

static void signed_overflow(void)
{
    s32 big = 0x7fffffff - (s32)opaque_zero;
    log_printf("plant: %d\n", big + 1);
}

static void index_out_of_bounds(void)
{
    static u32 table[4];
    u32 index = 4 + opaque_zero;
    log_printf("plant: %u\n", table[index]);
}

static void null_member(void)
{
    struct thread *t = (struct thread *)opaque_zero;
    log_printf("plant: %u\n", t->tid);
}

// --- kasan ------------------------------------------------------------------

static void use_after_free(void)
{
    volatile u8 *p = kmalloc(40);
    kfree((void *)p);
    log_printf("plant: %u\n", p[8]);
}

static void heap_overflow(void)
{
    volatile u8 *p = kmalloc(40);
    p[40 + opaque_zero] = 1; // by one
    kfree((void *)p);
}

static void stack_overflow_by_one(void)
{
    volatile u8 array[24];
    volatile u8 *p = array;
    array[0] = 0;
    p[24 + opaque_zero] = 1;
    log_printf("plant: %u\n", array[opaque_zero]);
}

static u8 global_array[40];

static void global_overflow(void)
{
    volatile u8 *p = global_array;
    p[40 + opaque_zero] = 1;
}

static void double_free(void)
{
    void *p = kmalloc(40);
    kfree(p);
    kfree(p);
}

// Another CPU may still have them in its TLB.
static void freed_pages(void)
{
    volatile u8 *p = vmap_alloc(1, PROT_R | PROT_W, FRAME_BUFFER);
    vmap_free((void *)p, 1);
    p[opaque_zero] = 1;
}

// --- kcsan ------------------------------------------------------------------

static u32 unlocked;

static void count_unlocked(void *arg UNUSED)
{
    for (u64 end = clock_now_ns() + 2 * NSEC_PER_SEC; clock_now_ns() < end;) {
        for (u32 i = 0; i < 1000; i++) {
            unlocked++;
            barrier();
        }
    }
}

static void unlocked_counter(void)
{
    kthread_create("racer", count_unlocked, NULL, NULL);
    count_unlocked(NULL);
}

static void count_in_interrupt(struct callout *t)
{
    unlocked++;
    callout_set(t, clock_now_ns() + 200 * NSEC_PER_USEC);
}

// A race with an interrupt handler, on the same CPU as well.
static void unmasked_counter(void)
{
    static struct callout timeout;
    callout_init(&timeout, count_in_interrupt, CALLOUT_INTERRUPT);
    callout_set(&timeout, clock_now_ns());
    count_unlocked(NULL);
    callout_drain(&timeout);
}

// --- lockdep ----------------------------------------------------------------

static struct spinlock lock_a = SPINLOCK_INIT("plant a");
static struct spinlock lock_b = SPINLOCK_INIT("plant b");
static struct mutex mutex_m = MUTEX_INIT(mutex_m, "plant m");

static void lock_inversion(void)
{
    spin_lock(&lock_a);
    spin_lock(&lock_b);
    spin_unlock(&lock_b);
    spin_unlock(&lock_a);
    spin_lock(&lock_b);
    spin_lock(&lock_a);
    spin_unlock(&lock_a);
    spin_unlock(&lock_b);
}

static void sleep_under_spinlock(void)
{
    spin_lock(&lock_a);
    mutex_lock(&mutex_m);
    mutex_unlock(&mutex_m);
    spin_unlock(&lock_a);
}

static void lock_not_held(void)
{
    spin_lock(&lock_a);
    spin_assert_held(&lock_a);
    spin_unlock(&lock_a);
    spin_assert_held(&lock_a);
}

static void mutex_not_owned(void)
{
    mutex_unlock(&mutex_m);
}

static void frame_twice(void)
{
    struct frame *f = frame_alloc(0, FRAME_LOW, FRAME_KERNEL);
    assert(f);
    frame_unref(f);
    frame_unref(f);
}

static void mutex_not_held(void)
{
    mutex_lock(&mutex_m);
    mutex_assert_held(&mutex_m);
    mutex_unlock(&mutex_m);
    mutex_assert_held(&mutex_m);
}

static void take_in_interrupt(struct callout *t UNUSED)
{
    spin_lock(&lock_a);
    spin_unlock(&lock_a);
}

static void take_in_interrupt_soon(void)
{
    static struct callout timeout;
    callout_init(&timeout, take_in_interrupt, CALLOUT_INTERRUPT);
    callout_set(&timeout, clock_now_ns() + NSEC_PER_MSEC);
    thread_sleep_until(clock_now_ns() + 50 * NSEC_PER_MSEC,
                       WAIT_UNINTERRUPTIBLE);
}

static void interrupt_unsafe_lock(void)
{
    spin_lock(&lock_a); // with interrupts on
    spin_unlock(&lock_a);
    take_in_interrupt_soon();
}

// The same with two locks: a CPU that holds lock_b with interrupts on is
// interrupted, the handler waits for lock_a, and its holder waits for lock_b.
static void interrupt_unsafe_chain(void)
{
    spin_lock(&lock_b); // with interrupts on
    spin_unlock(&lock_b);
    u32 flags = spin_lock_irq(&lock_a);
    spin_lock(&lock_b);
    spin_unlock(&lock_b);
    spin_unlock_irq(&lock_a, flags);
    take_in_interrupt_soon();
}

// Interrupts off for longer than the limit of the hang watch, which runs on
// another CPU.
static void hang(void)
{
    u64 end = rdtsc() + 25 * clock_tsc_hz();
    u32 flags = irq_save();
    while (rdtsc() < end)
        cpu_relax();
    irq_restore(flags);
}

static void lock_twice(void)
{
    spin_lock(&lock_a);
    spin_lock(&lock_a);
}

#define LEAKS 5u // a stale word on the stack may hide one

// --- in a system call -------------------------------------------------------

static void spinlock_to_user(void)
{
    spin_lock(&lock_a);
}

static void mutex_to_user(void)
{
    mutex_lock(&mutex_m);
}

// Larger than the part of the stack that the call has used before.
struct answer {
    u32 set, forgotten[255];
};

static NOINLINE void answer_with(const struct answer *a)
{
    u32 below_stack = trap_user_sp(syscall_frame()) - KIB(1);
    log_printf("plant: %d\n", copy_to_user(below_stack, a, sizeof(*a)));
}

static void uninit_stack(void)
{
    struct answer a;
    a.set = 1;
    answer_with(&a);
}

static void uninit_heap(void)
{
    struct answer *a = kmalloc(sizeof(*a));
    a->set = 1;
    answer_with(a);
    kfree(a);
}

// As a fork whose copy of the memory is forgotten.
static void fork_leak(void)
{
    struct aspace *copy;
    for (u32 i = 0; i < LEAKS; i++) {
        int err = aspace_fork(current_task()->aspace, &copy);
        assert(!err);
    }
    copy = NULL;
}

// Members of lists point to it, too.
static void vnode_leak(void)
{
    struct vnode *v;
    for (u32 i = 0; i < 4 * LEAKS; i++) {
        int err = vfs_lookup(NULL, "/etc/passwd", 0, &v);
        assert(!err);
    }
}

// --- every checked kernel ---------------------------------------------------

static struct waitq forgetful = WAITQ_INIT(forgetful, "plant w");

static void sleep_for(u32 seconds)
{
    for (u32 i = 0; i < 10 * seconds; i++)
        thread_sleep_until(clock_now_ns() + 100 * NSEC_PER_MSEC,
                           WAIT_UNINTERRUPTIBLE);
}

// The check sees it after 5 s, and would report it 10 s later.
static void wake_late(void *arg)
{
    u32 seconds = *(u32 *)arg;
    sleep_for(7);
    log_printf("plant: not woken yet\n");
    sleep_for(seconds - 7);
    waitq_wake_all(&forgetful);
}

// What is waited for happens while the thread sleeps.
static void wait_for_late(u32 seconds)
{
    u32 readings = 0;
    kthread_create("late", wake_late, &seconds, NULL);
    wait_event(&forgetful, readings++, WAIT_UNINTERRUPTIBLE, WAIT_FOREVER);
}

// Longer than any check.
static void forgotten_wake(void)
{
    wait_for_late(60);
}

// In time, if the host does not stop the machine.
static void late_wake(void)
{
    wait_for_late(10);
}

static void write_after_free(void)
{
    u32 *p[4];
    for (u32 i = 0; i < ARRAY_SIZE(p); i++)
        p[i] = kmalloc(300);
    for (u32 i = 0; i < ARRAY_SIZE(p); i++)
        kfree(p[i]);
    *(volatile u32 *)(p[0] + 5 + opaque_zero) = 1;
    for (u32 i = 0; i < ARRAY_SIZE(p); i++) // one of these is p[0] again
        p[i] = kmalloc(300);
}

static NOINLINE u32 recurse(u32 depth)
{
    volatile u8 room[64];
    room[0] = (u8)depth;
    if (depth == UINT32_MAX - opaque_zero)
        return 0;
    return recurse(depth + 1) + room[0]; // after the call: no jump
}

// Into the guard page below the stack.
static void deep_recursion(void)
{
    log_printf("plant: %u\n", recurse(0));
}

static void lose_objects(void)
{
    for (u32 i = 0; i < LEAKS; i++)
        (void)*(volatile u8 *)kmalloc(40);
    machine_power_off(false);
}

static void lose_frames(void)
{
    for (u32 i = 0; i < LEAKS; i++)
        (void)*(volatile u8 *)&frame_alloc(0, FRAME_ANY, FRAME_USER)->use;
    machine_power_off(false);
}

static void lose_ranges(void)
{
    for (u32 i = 0; i < LEAKS; i++)
        (void)*(volatile u8 *)vmap_alloc(2, PROT_R | PROT_W, FRAME_BUFFER);
    machine_power_off(false);
}

// An object that is never freed: more references were taken than pointers are
// kept.
static void lose_references(void)
{
    static const struct file_ops no_ops;
    static struct file *kept;
    kept = file_alloc(&no_ops, 0);
    for (u32 i = 0; i < 4 * LEAKS; i++)
        file_ref(kept);
    machine_power_off(false);
}

// Not a bug: the memory of threads that have just ended is not a leak.
static void end_on_request(void *request)
{
    while (!__atomic_load_n((u32 *)request, __ATOMIC_ACQUIRE))
        sched_yield();
}

// A clock of another rate than it claims, by 1 %.
static void wrong_clock(void)
{
    FOR_EACH_TIMECOUNTER(tc)
    {
        if (!strcmp((*tc)->name, "acpi_pm"))
            (*tc)->hz += (*tc)->hz / 100;
    }
}

// A TSC that was measured as 2.5 times too slow, and tells the time.
static void wrong_rate(void)
{
    struct timecounter *tsc = timecounter_in_use();
    assert(!strcmp(tsc->name, "tsc"));
    tsc->hz = tsc->hz * 2 / 5;
    tsc->corrected(tsc);
    timehands_use(tsc);
}

static void end_late(void)
{
    static u32 request;
    for (u32 i = 0; i < 16 * cpu_count; i++) // more than the stack cache holds
        kthread_create("late", end_on_request, &request, NULL);
    __atomic_store_n(&request, 1, __ATOMIC_RELEASE);
    machine_power_off(false);
}

struct plant {
    const char *name;
    void (*run)(void);
};

static void text_mismatch(void)
{
    text_patch(text_entries_start, 1, text_entries_start[0], false);
}

static const struct plant plants[] = {
    { "shift-too-far", shift_too_far },
    { "signed-overflow", signed_overflow },
    { "index-out-of-bounds", index_out_of_bounds },
    { "null-member", null_member },
    { "use-after-free", use_after_free },
    { "heap-overflow", heap_overflow },
    { "stack-overflow", stack_overflow_by_one },
    { "global-overflow", global_overflow },
    { "double-free", double_free },
    { "freed-pages", freed_pages },
    { "unlocked-counter", unlocked_counter },
    { "unmasked-counter", unmasked_counter },
    { "lock-inversion", lock_inversion },
    { "sleep-under-spinlock", sleep_under_spinlock },
    { "interrupt-unsafe-lock", interrupt_unsafe_lock },
    { "interrupt-unsafe-chain", interrupt_unsafe_chain },
    { "lock-twice", lock_twice },
    { "lock-not-held", lock_not_held },
    { "mutex-not-held", mutex_not_held },
    { "hang", hang },
    { "mutex-not-owned", mutex_not_owned },
    { "frame-twice", frame_twice },
    { "forgotten-wake", forgotten_wake },
    { "late-wake", late_wake },
    { "write-after-free", write_after_free },
    { "deep-recursion", deep_recursion },
    { "text-mismatch", text_mismatch },
    { "leak", lose_objects },
    { "frame-leak", lose_frames },
    { "vmap-leak", lose_ranges },
    { "reference-leak", lose_references },
    { "no-leak", end_late },
};
// Bugs in a system call, run by /dev/plant.
static const struct plant call_plants[] = {
    { "spinlock-to-user", spinlock_to_user },
    { "mutex-to-user", mutex_to_user },
    { "uninit-stack", uninit_stack },
    { "uninit-heap", uninit_heap },
    { "fork-leak", fork_leak },
    { "vnode-leak", vnode_leak },
    { "wrong-clock", wrong_clock },
    { "wrong-rate", wrong_rate },
};

static const struct plant *find(const struct plant *table, u32 n,
                                const char *name)
{
    for (u32 i = 0; i < n; i++) {
        if (!strcmp(table[i].name, name))
            return &table[i];
    }
    return NULL;
}

NORETURN static void plant_run(const char *name)
{
    const struct plant *p = find(plants, ARRAY_SIZE(plants), name);
    if (!p)
        panic("plant=%s: there is no such planted bug", name);
    p->run();
    log_printf("plant: %s was NOT reported\n", p->name);
    machine_power_off(true);
}

static const struct tester plant_tester = { "plant", plant_run };
TESTER(plant_tester);

// --- /dev/plant: a name is written, and the bug runs in that call ----------

#define NAME_SIZE 32u

static int plant_write(struct file *f UNUSED, struct io *io, u64 *pos UNUSED)
{
    char name[NAME_SIZE];
    size_t n = io->left;
    if (!n || n >= sizeof(name))
        return -EINVAL;
    int err = io_from(io, name, n);
    if (err)
        return err;
    name[name[n - 1] == '\n' ? n - 1 : n] = '\0';
    const struct plant *p = find(call_plants, ARRAY_SIZE(call_plants), name);
    if (!p)
        return -EINVAL;
    p->run();
    return (int)n;
}

static const struct file_ops device_ops = { .write = plant_write };
static const struct char_device plant_device = {
    .name = "plant",
    .rdev = DEVICE_NUMBER(DEBUG_DEVICES, PLANT_MINOR),
    .mode = 0600,
    .ops = &device_ops,
};
CHAR_DEVICE(plant_device);
