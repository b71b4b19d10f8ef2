// The sysinfo tree from inside: every node, snapshots, and no memory leaks.

#include "tests/kernel/test.h"

#include "kernel/base/errno.h"
#include "kernel/mm/frame.h"
#include "kernel/monitor/snapshot.h"
#include "kernel/monitor/sysinfo.h"
#include "kernel/monitor/sysinfo_values.h"
#include "kernel/task/task.h"
#include "lib/format.h"
#include "lib/records.h"
#include "lib/string.h"

// ---- chains

KERNEL_TEST(sysinfo_chain_keeps_entries_in_order)
{
    struct chain_cursor cur;
    struct chain c;
    u32 n = 0;

    chain_init(&c, sizeof(u32));
    expect(!chain_begin(&cur, &c));
    for (u32 i = 0; i < 5000; i++) {
        u32 *e = chain_add(&c);
        expect(e && *e == 0);
        *e = i;
    }
    for (u32 *e = chain_begin(&cur, &c); e; e = chain_next(&cur))
        expect(*e == n++);
    expect(n == 5000 && c.count == 5000 && chain_bytes(&c) == 20000);
    chain_free(&c);
    expect(!c.count && !c.first);
    chain_free(&c);
}

KERNEL_TEST(sysinfo_chain_reserves)
{
    struct chain c;

    chain_init(&c, PAGE_SIZE / 2 - sizeof(struct chain_page));
    expect(!chain_reserve(&c, 5) && c.room >= 5 && !c.count);
    for (u32 i = 0; i < 5; i++)
        memset(chain_put(&c), (int)i, c.entry_size);
    expect(c.count == 5);
    chain_free(&c);
}

KERNEL_TEST(sysinfo_chain_of_text_spans_pages)
{
    struct chain_cursor cur;
    struct chain c;
    u32 n = 0;

    chain_init(&c, 1);
    for (u32 i = 0; i < 2000; i++)
        chain_printf(&c, "%05u", i);
    expect(c.count == 10000);
    for (char *e = chain_begin(&cur, &c); e; e = chain_next(&cur), n++) {
        char digits[6];
        format(digits, sizeof(digits), "%05u", n / 5);
        expect(*e == digits[n % 5]);
    }
    expect(n == 10000);
    chain_free(&c);
}

// ---- the tree

static int type_of(const char *path)
{
    return sysinfo_type(path, strlen(path));
}

static u32 buffers(void)
{
    struct frame_stats s;
    frame_stats(&s);
    return (u32)s.by_use[FRAME_BUFFER];
}

// Reads the node and its subtree. Numbered children may have disappeared.
// Returns the number of nodes.
static u32 walk(const char *path)
{
    int type = type_of(path);
    struct chain_cursor cur;
    struct chain data, keys;
    char child[SYSINFO_PATH_MAX];
    u32 n = 1, start = (u32)format(child, sizeof(child), "%s%s", path,
                                   path[0] ? "." : "");
    u32 len = start;

    if (type == -ENOENT)
        return 0;
    expect(type > 0);
    expect(!sysinfo_data(path, strlen(path), &data) || start > 14);
    if (SYSINFO_KIND(type) == SYSINFO_DATA) {
        u32 size = sysinfo_record_type(SYSINFO_WHAT(type))->size;
        expect(chain_bytes(&data) % size == 0);
    }
    if (SYSINFO_KIND(type) == SYSINFO_VALUE)
        expect(chain_bytes(&data) == sizeof(u64));
    if (SYSINFO_KIND(type) == SYSINFO_SUBTREE)
        expect(chain_bytes(&data) == 0);
    chain_free(&data);
    sysinfo_keys(path, strlen(path), &keys);
    for (char *e = chain_begin(&cur, &keys); e; e = chain_next(&cur)) {
        child[len++] = *e;
        if (*e)
            continue;
        n += walk(child);
        len = start;
    }
    expect(len == start); // the last name is complete
    chain_free(&keys);
    return n;
}

KERNEL_TEST(sysinfo_every_node_can_be_read)
{
    u32 n = walk("");
    expect(n > 30);
    u32 before = buffers();
    walk("");
    expect(buffers() == before);
}

KERNEL_TEST(sysinfo_counts_without_making)
{
    u32 before = buffers(), counting = 0;
    LINKER_SET_FOR_EACH(const struct sysinfo_node, n, sysinfo_nodes) {
        const char *path = (*n)->path;
        struct chain data, size;
        if (!(*n)->count)
            continue;
        expect(!sysinfo_data(path, strlen(path), &data));
        expect(!sysinfo_size(path, strlen(path), &size));
        expect(data.count && chain_bytes(&size) == chain_bytes(&data));
        expect(!size.first);
        chain_free(&data);
        chain_free(&size);
        counting++;
    }
    expect(counting && buffers() == before);
}

// Each node is found by its path, wherever it is in the order.
KERNEL_TEST(sysinfo_finds_each_node)
{
    LINKER_SET_FOR_EACH(const struct sysinfo_node, n, sysinfo_nodes) {
        const char *path = (*n)->path;
        if (!strchr(path, '#'))
            expect(type_of(path) == (int)(*n)->type);
    }
    expect(type_of("system.tasks.0.threads") ==
           SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_THREAD));
}

// By address what the list has, at its first and at its last byte.
KERNEL_TEST(sysinfo_functions_are_those_of_the_symbols)
{
    static const char path[] = "system.functions";
    struct chain_cursor cur;
    struct chain all;
    expect(!sysinfo_data(path, strlen(path), &all));
    for (struct sysinfo_function *f = chain_begin(&cur, &all); f;
         f = chain_next(&cur)) {
        u32 at = moved_address(f->address), offset;
        const char *name = ksym_lookup(at, &offset);
        expect(!offset && !strncmp(name, f->name, sizeof(f->name) - 1));
        expect(ksym_lookup(at + f->size - 1, &offset) == name &&
               offset == f->size - 1);
    }
    chain_free(&all);
    expect(!ksym_lookup(0, NULL) && !ksym_lookup(-1u, NULL));
}

KERNEL_TEST(sysinfo_paths_that_lead_nowhere)
{
    static const char *const wrong[] = {
        "x",
        ".",
        "system.",
        "system.cpus.99",
        "system.cpus.0.x",
        "system.tasks.4294967295",
        "system.tasks.4194304.threads",
        "system.threads.4294967295",
        "system.exceptions.256",
        "kernel.version.0",
        "system.tasks.#",
    };
    u32 before = buffers();
    for (u32 i = 0; i < ARRAY_SIZE(wrong); i++) {
        struct chain c;
        expect(type_of(wrong[i]) == -ENOENT);
        expect(sysinfo_data(wrong[i], strlen(wrong[i]), &c) == -ENOENT);
        chain_free(&c);
        expect(sysinfo_keys(wrong[i], strlen(wrong[i]), &c) == -ENOENT);
        chain_free(&c);
    }
    expect(buffers() == before);
}

// ---- consistency of values

KERNEL_TEST(sysinfo_cpu_accounts_sum_up)
{
    for (u32 i = 0; i < cpu_count; i++) {
        struct sysinfo_cpu c, later;
        sysinfo_fill_cpu(i, &c);
        expect(c.user + c.kernel + c.irq + c.idle + c.start_up == c.elapsed);
        expect(c.busy + c.idle == c.elapsed);
        expect(c.id == i && c.active);
        sysinfo_fill_cpu(i, &later);
        expect(later.elapsed > c.elapsed && later.user >= c.user);
        expect(later.irq >= c.irq && later.switches >= c.switches);
    }
}

KERNEL_TEST(sysinfo_memory_sums_up)
{
    struct sysinfo_physmem m;
    sysinfo_fill_physmem(&m);
    expect(m.used + m.free == m.total);
    expect(m.low_total + m.high_total == m.total);
    expect(m.low_free + m.high_free == m.free);
    expect(m.kernel && m.slab && m.kstack);
}

KERNEL_TEST(sysinfo_own_thread)
{
    struct sysinfo_thread t, later;
    expect(!sysinfo_fill_thread(current->tid, &t));
    expect(t.id == current->tid && t.task == 0);
    expect(t.state == SYSINFO_RUNNING && !t.wait_on[0]);
    expect(!strcmp(t.name, current->name));
    expect(!sysinfo_fill_thread(current->tid, &later));
    expect(later.kernel > t.kernel && later.user == 0);
    expect(sysinfo_fill_thread(0, &t) == -ENOENT);
}

KERNEL_TEST(sysinfo_kernel_task)
{
    struct sysinfo_task t;
    expect(!sysinfo_fill_task(0, &t));
    expect(t.id == 0 && t.parent == 0 && !strcmp(t.name, "kernel"));
    expect(t.threads >= 2 && t.state == SYSINFO_RUNNING);
    expect(t.user == 0 && t.kernel > 0 && t.virtual == 0);
    expect(sysinfo_fill_task(SNAPSHOT_ALL, &t) == -ENOENT);
}

// ---- snapshots

static struct waitq queue = WAITQ_INIT(queue, "sysinfo test");
static u32 may_end, ended;

static void wait_and_end(void *arg UNUSED)
{
    wait_event(&queue, READ_ONCE(may_end), WAIT_UNINTERRUPTIBLE, WAIT_FOREVER);
    __atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST);
    waitq_wake_all(&queue);
}

static u32 occurrences(const struct snapshot *s, const struct thread *t)
{
    struct chain_cursor cur;
    u32 n = 0;
    for (struct thread **th = chain_begin(&cur, &s->threads); th;
         th = chain_next(&cur))
        n += *th == t;
    return n;
}

// The threads of a snapshot can be read after their end; the next snapshot
// lacks them.
KERNEL_TEST(sysinfo_snapshot_outlives_threads)
{
    struct thread *t[8];
    struct snapshot s;
    u32 tid = 0;

    may_end = ended = 0;
    for (u32 i = 0; i < ARRAY_SIZE(t); i++)
        expect(!kthread_create("sysinfo", wait_and_end, NULL, &t[i]));
    expect(!snapshot_take(&s, SNAPSHOT_ALL));
    for (u32 i = 0; i < ARRAY_SIZE(t); i++) {
        expect(occurrences(&s, t[i]) == 1);
        tid = t[i]->tid;
        thread_unref(t[i]);
    }
    WRITE_ONCE(may_end, 1);
    waitq_wake_all(&queue);
    wait_event(&queue, READ_ONCE(ended) == ARRAY_SIZE(t), WAIT_UNINTERRUPTIBLE,
               WAIT_FOREVER);
    struct sysinfo_thread record;
    u64 deadline = clock_now_ns() + TEST_PATIENCE;
    while (!sysinfo_fill_thread(tid, &record) && clock_now_ns() < deadline)
        sched_yield();
    expect(sysinfo_fill_thread(tid, &record) == -ENOENT);
    u64 user, kernel;
    expect(occurrences(&s, t[7]) == 1);
    thread_times(t[7], &user, &kernel);
    expect(kernel > 0 && user == 0);
    snapshot_free(&s);
}

static u32 stop_storm, storming;

static void nothing(void *arg UNUSED)
{
}

static void storm(void *arg UNUSED)
{
    while (!READ_ONCE(stop_storm)) {
        if (kthread_create("storm", nothing, NULL, NULL))
            sched_yield();
        if (thread_count() > 200)
            thread_sleep_until(clock_now_ns() + NSEC_PER_MSEC,
                               WAIT_UNINTERRUPTIBLE);
    }
    __atomic_sub_fetch(&storming, 1, __ATOMIC_SEQ_CST);
    waitq_wake_all(&queue);
}

// While threads are created and end, a snapshot has each thread that stays
// exactly once, and the task's times never decrease.
KERNEL_TEST(sysinfo_snapshots_in_a_storm)
{
    u64 last = 0;

    stop_storm = 0;
    storming = 2;
    for (u32 i = 0; i < 2; i++)
        expect(!kthread_create("storm", storm, NULL, NULL));
    for (u32 i = 0; i < 100; i++) {
        struct snapshot s;
        struct sysinfo_task task;
        expect(!snapshot_take(&s, i % 2 ? SNAPSHOT_ALL : 0));
        expect(occurrences(&s, current) == 1);
        snapshot_free(&s);
        expect(!sysinfo_fill_task(0, &task));
        expect(task.kernel > last);
        last = task.kernel;
    }
    WRITE_ONCE(stop_storm, 1);
    wait_event(&queue, !READ_ONCE(storming), WAIT_UNINTERRUPTIBLE,
               WAIT_FOREVER);
}
