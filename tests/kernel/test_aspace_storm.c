// Address spaces under random operations, against a model, and under several
// threads at once.

#include "kernel/sched/thread.h"
#include "lib/string.h"
#include "tests/kernel/aspace_helpers.h"

// --- against a model --------------------------------------------------------

#define PAGES 48u
#define FAMILY 3u // spaces: a parent and its forks

struct model {
    struct aspace *as;
    bool mapped[PAGES];
    bool writable[PAGES];
    u32 value[PAGES];
};

static void check_model(struct model *m)
{
    u32 pages = 0;
    for (u32 i = 0; i < PAGES; i++) {
        u32 value, addr = AT + i * PG + 8;
        int n = aspace_read(m->as, addr, &value, sizeof(value));
        expect((n == sizeof(value)) == m->mapped[i]);
        expect(!m->mapped[i] || value == m->value[i]);
        pages += m->mapped[i];
    }
    expect(m->as->virtual_pages == pages);
    struct area *a, *last = NULL;
    list_for_each(a, &m->as->areas, node) {
        expect(a->start < a->end && (!last || last->end <= a->start));
        expect(!last || last->end < a->start || last->prot != a->prot);
        last = a;
    }
}

static void random_map(struct model *m, u32 first, u32 n)
{
    bool writable = test_random() & 1;
    u32 prot = writable ? RW : PROT_R;
    expect(!map_at(m->as, AT + first * PG, n, prot, 0));
    for (u32 i = first; i < first + n; i++) {
        m->mapped[i] = true;
        m->writable[i] = writable;
        m->value[i] = 0;
    }
}

static void random_unmap(struct model *m, u32 first, u32 n)
{
    expect(!aspace_unmap(m->as, AT + first * PG, n * PG));
    for (u32 i = first; i < first + n; i++)
        m->mapped[i] = false;
}

static void random_protect(struct model *m, u32 first, u32 n)
{
    bool writable = test_random() & 1, full = true;
    for (u32 i = first; i < first + n; i++)
        full &= m->mapped[i];
    int err =
        aspace_protect(m->as, AT + first * PG, n * PG, writable ? RW : PROT_R);
    expect(err == (full ? 0 : -ENOMEM));
    for (u32 i = first; full && i < first + n; i++)
        m->writable[i] = writable;
}

static void random_write(struct model *m, u32 first, u32 n)
{
    for (u32 i = first; i < first + n; i++) {
        u32 value = test_random();
        bool done = put(m->as, AT + i * PG + 8, value);
        expect(done == (m->mapped[i] && m->writable[i]));
        if (done)
            m->value[i] = value;
    }
}

static void random_move(struct model *m, u32 first, u32 n)
{
    u32 to = test_random() % PAGES, out;
    bool one = true; // the range lies in one area
    for (u32 i = first; i < first + n; i++)
        one &= m->mapped[i] && m->writable[i] == m->writable[first];
    if (!one || to + n > PAGES || (to < first + n && first < to + n))
        return;
    expect(!aspace_remap(m->as, AT + first * PG, n * PG, n * PG, true, true,
                         AT + to * PG, &out));
    for (u32 i = 0; i < n; i++) {
        m->mapped[first + i] = false;
        m->mapped[to + i] = true;
        m->writable[to + i] = m->writable[first];
        m->value[to + i] = m->value[first + i];
    }
}

static void random_fork(struct model *family)
{
    struct model *child = &family[1 + test_random() % (FAMILY - 1)];
    aspace_unref(child->as);
    struct aspace *as = NULL;
    if (aspace_fork(family[0].as, &as))
        panic("no memory for a test");
    *child = family[0];
    child->as = as;
}

KERNEL_TEST(mm_random_operations_match_a_model)
{
    static struct model family[FAMILY];
    u64 before = frames_of(FRAME_USER), tables = frames_of(FRAME_PAGETABLE);
    memset(family, 0, sizeof(family));
    for (u32 i = 0; i < FAMILY; i++)
        family[i].as = space();
    for (u32 round = 0; round < 3000; round++) {
        struct model *m = &family[test_random() % FAMILY];
        u32 first = test_random() % PAGES;
        u32 n = 1 + test_random() % MIN(PAGES - first, 8u);
        switch (test_random() % 8) {
        case 0:
        case 1:
            random_map(m, first, n);
            break;
        case 2:
            random_unmap(m, first, n);
            break;
        case 3:
            random_protect(m, first, n);
            break;
        case 4:
            random_move(m, first, n);
            break;
        case 5:
            random_fork(family);
            break;
        default:
            random_write(m, first, n);
        }
        if (round % 16 == 0)
            check_model(m);
    }
    for (u32 i = 0; i < FAMILY; i++) {
        check_model(&family[i]);
        aspace_unref(family[i].as);
    }
    expect(frames_of(FRAME_USER) == before);
    expect(frames_of(FRAME_PAGETABLE) == tables);
}

// --- several threads in one space -------------------------------------------

#define WORKERS 6u
#define WORK_PAGES 64u

static struct aspace *busy;
static u32 workers_left, worker_errors;

static void fault_worker(void *arg)
{
    u32 id = (u32)arg;
    for (u32 i = 0; i < 2000; i++) {
        u32 addr = AT + (i * 7 + id) % WORK_PAGES * PG + id * 4, value;
        aspace_write(busy, addr, &i, sizeof(i));
        if (aspace_read(busy, addr, &value, sizeof(value)) < 0 || value != i)
            __atomic_fetch_add(&worker_errors, 1, __ATOMIC_RELAXED);
        struct aspace *child;
        if (i % 64 == 0 && !aspace_fork(busy, &child)) {
            if (get(child, addr) != i)
                __atomic_fetch_add(&worker_errors, 1, __ATOMIC_RELAXED);
            aspace_unref(child);
        }
    }
    __atomic_fetch_sub(&workers_left, 1, __ATOMIC_RELEASE);
}

KERNEL_TEST(mm_threads_fault_in_one_space)
{
    u64 before = frames_of(FRAME_USER);
    busy = space();
    expect(!map_at(busy, AT, WORK_PAGES, RW, 0));
    worker_errors = 0;
    workers_left = WORKERS;
    for (u32 i = 0; i < WORKERS; i++) {
        if (kthread_create("faults", fault_worker, (void *)i, NULL))
            panic("no memory for a test");
    }
    while (__atomic_load_n(&workers_left, __ATOMIC_ACQUIRE))
        thread_sleep_until(clock_now_ns() + NSEC_PER_MSEC,
                           WAIT_UNINTERRUPTIBLE);
    expect(!worker_errors && busy->resident_pages == WORK_PAGES);
    aspace_unref(busy);
    expect(frames_of(FRAME_USER) == before);
}

// --- loaded on other CPUs ---------------------------------------------------

// `as`, which no thread needs, stays loaded on CPU `user` (lazy TLB), until
// CPU `changer` changes a page: then it is unloaded there.
static void check_shootdown(struct aspace *as, u32 user, u32 changer, u32 prot)
{
    expect(put(as, AT, 1)); // the page is in the page tables
    expect(!run_on(current, user));
    aspace_switch(as);
    expect(!run_on(current, changer));
    expect(cpus[user]->aspace == as && cpu_set_has(&as->cpus, user));
    expect(!cpu_set_has_other(&as->cpus, user));
    expect(!aspace_protect(as, AT, PG, prot));
    expect(cpus[user]->aspace != as && cpu_set_is_empty(&as->cpus));
    expect(!aspace_protect(as, AT, PG, RW));
}

// The CPUs at both ends of each word of a set.
KERNEL_TEST(mm_shootdown_reaches_cpus_of_each_word)
{
    if (cpu_count == 1) {
        test_skip("one CPU");
        return;
    }
    struct aspace *as = space();
    expect(!map_at(as, AT, 1, RW, 0));
    for (u32 first = 0; first < cpu_count; first += CPU_SET_WORD_BITS) {
        u32 last = MIN(first + CPU_SET_WORD_BITS, cpu_count) - 1;
        u32 elsewhere = first ? 0 : cpu_count - 1;
        if (first != last) {
            check_shootdown(as, first, last, PROT_R);
            check_shootdown(as, last, first, 0);
        }
        if (last != elsewhere)
            check_shootdown(as, last, elsewhere, PROT_R);
        check_shootdown(as, first, elsewhere, 0);
    }
    expect(!run_on(current, cpu_count - 1));
    aspace_switch(as);
    expect(!run_anywhere(current));
    aspace_unref(as); // unloads it
    expect(cpus[cpu_count - 1]->aspace != as);
}
