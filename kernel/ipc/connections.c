// All connected phones, for system.ipccs.
//
// `connections_lock` guards the list. A reader gets a copy of it, made under
// the lock at one instant; memory for the copy is allocated before, and more if
// phones were added since.
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/base/providers.h"
#include "kernel/ipc/ipc.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/task/task.h"

struct connection {
    u32 caller, callee;
};

static struct spinlock connections_lock = SPINLOCK_INIT("connections");
static struct list phones = LIST_INIT(phones);
static u32 phone_count;

void connection_add(struct phone *p)
{
    spin_lock(&connections_lock);
    assert_checked(list_empty(&p->all_node));
    list_push_back(&phones, &p->all_node);
    WRITE_ONCE(phone_count, phone_count + 1);
    spin_unlock(&connections_lock);
}

void connection_remove(struct phone *p)
{
    spin_lock(&connections_lock);
    assert_checked(!list_empty(&p->all_node) && phone_count);
    list_remove(&p->all_node);
    WRITE_ONCE(phone_count, phone_count - 1);
    spin_unlock(&connections_lock);
}

static bool copy_all(struct connection *to, u32 room, u32 *count)
{
    u32 n = 0;
    struct phone *p;
    spin_lock(&connections_lock);
    bool fits = phone_count <= room;
    if (fits) {
        list_for_each(p, &phones, all_node)
            to[n++] = (struct connection){ p->owner, p->box->task->id };
    }
    spin_unlock(&connections_lock);
    *count = n;
    return fits;
}

void ipc_for_each_connection(void (*fn)(u32 caller, u32 callee, void *arg),
                             void *arg)
{
    assert_may_sleep();
    for (;;) {
        u32 wanted = READ_ONCE(phone_count) + 8, count;
        u32 pages = DIV_ROUND_UP(wanted * sizeof(struct connection), PAGE_SIZE);
        u32 room = pages * PAGE_SIZE / sizeof(struct connection);
        struct connection *all =
            vmap_alloc(pages, PROT_R | PROT_W, FRAME_BUFFER);
        if (!all)
            return; // reported as none
        bool done = copy_all(all, room, &count);
        for (u32 i = 0; i < count; i++)
            fn(all[i].caller, all[i].callee, arg);
        vmap_free(all, pages);
        if (done)
            return;
    }
}

// --- records for the sysinfo tree -------------------------------------------

struct connection_sink {
    void (*fn)(const struct sysinfo_ipcc *, void *);
    void *arg;
};

static void report_connection(u32 caller, u32 callee, void *arg)
{
    const struct connection_sink *p = arg;
    struct sysinfo_ipcc record = { .caller = caller, .callee = callee };
    p->fn(&record, p->arg);
}

void ipc_connections_each(void (*fn)(const struct sysinfo_ipcc *, void *),
                          void *arg)
{
    struct connection_sink p = { fn, arg };
    ipc_for_each_connection(report_connection, &p);
}

void ipc_task_counts(const struct task *t, struct ipc_counts *out)
{
    const struct ipc_counters *c = &t->ipc_counters;
#define READ(name) out->name = ipc_counter_read(&c->name);
    IPC_COUNTS(READ)
#undef READ
}
