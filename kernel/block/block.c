// The list of disks, and the requests to them; see block.h and driver.h.
//
// A request is written by a task, under the disk's mutex, and answered by the
// driver's thread. d->state guards its states; who sees the disk gone under it
// asks nothing any more.
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/base/providers.h"
#include "kernel/block/driver.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/mutex.h"
#include "lib/format.h"
#include "lib/list.h"
#include "lib/string.h"

struct block_device {
    struct list node;
    u32 refs;    // the driver's, the taker's, and a reader's; disks_lock
    bool taken;  // disks_lock
    bool tried;  // the same: it is not mounted by itself
    bool looked; // the same: block_look has read its partitions, or cannot
    struct block_facts facts; // name and model are these:
    char name[BLOCK_NAME_BYTES];
    char model[BLOCK_MODEL_BYTES];
    const char *unfit; // disks_lock

    struct mutex reading; // of the partitions
    struct partition_table table;
    const struct partition_table *partitions; // the table, when it is read

    struct mutex lock; // of one request
    struct waitq answered;
    struct spinlock state;
    bool gone, asked;
    struct block_request request;
    int result;
};

static struct mutex disks_lock = MUTEX_INIT(disks_lock, "disks");
static struct list disks = LIST_INIT(disks);

static void put(struct block_device *d)
{
    mutex_assert_held(&disks_lock);
    if (--d->refs)
        return;
    kfree(d);
}

// --- the driver's side

struct block_device *block_add(const struct block_facts *facts)
{
    struct block_device *d = kzalloc(sizeof(*d));
    if (!d)
        return NULL;
    d->facts = *facts;
    strlcpy(d->name, facts->name, sizeof(d->name));
    strlcpy(d->model, facts->model, sizeof(d->model));
    d->unfit = facts->unfit;
    d->gone = facts->unfit != NULL;
    d->refs = 1;
    mutex_init(&d->lock, "disk");
    mutex_init(&d->reading, "partitions");
    waitq_init(&d->answered, "disk");
    spin_init(&d->state, "disk");
    mutex_lock(&disks_lock);
    list_push_back(&disks, &d->node);
    mutex_unlock(&disks_lock);
    block_devices_changed();
    return d;
}

static void end_requests(struct block_device *d)
{
    spin_lock(&d->state);
    d->gone = true;
    if (d->asked)
        d->result = -EIO;
    WRITE_ONCE(d->asked, false);
    spin_unlock(&d->state);
    waitq_wake_all(&d->answered);
}

void block_remove(struct block_device *d)
{
    end_requests(d);
    mutex_lock(&disks_lock);
    list_remove(&d->node);
    put(d);
    mutex_unlock(&disks_lock);
    block_devices_changed();
}

void block_fail(struct block_device *d, const char *why)
{
    mutex_lock(&disks_lock);
    d->unfit = why;
    mutex_unlock(&disks_lock);
    end_requests(d);
    block_devices_changed();
}

bool block_asked(const struct block_device *d)
{
    return READ_ONCE(d->asked);
}

bool block_request(struct block_device *d, struct block_request *r)
{
    spin_lock(&d->state);
    bool asked = d->asked;
    *r = d->request;
    spin_unlock(&d->state);
    return asked;
}

void block_answer(struct block_device *d, int result)
{
    spin_lock(&d->state);
    d->result = result;
    WRITE_ONCE(d->asked, false);
    spin_unlock(&d->state);
    waitq_wake_all(&d->answered);
}

// --- the other side

static bool matches(const struct block_device *d, const char *name)
{
    mutex_assert_held(&disks_lock);
    if (d->unfit)
        return false;
    return name ? strcmp(d->name, name) == 0
                : d->facts.stick && !d->taken && !d->tried;
}

int block_take(const char *name, struct block_device **out)
{
    struct block_device *d, *found = NULL;
    int err = -ENXIO;
    mutex_lock(&disks_lock);
    list_for_each(d, &disks, node) {
        if (!found && matches(d, name))
            found = d;
    }
    if (found)
        err = found->taken ? -EBUSY : 0;
    if (!err) {
        found->taken = true;
        found->refs++;
        *out = found;
    }
    mutex_unlock(&disks_lock);
    return err;
}

void block_put(struct block_device *d, bool again)
{
    mutex_lock(&disks_lock);
    d->taken = false;
    d->tried = !again;
    put(d);
    mutex_unlock(&disks_lock);
}

bool block_gone(const struct block_device *d)
{
    return READ_ONCE(d->gone);
}

bool block_read_only(const struct block_device *d)
{
    return d->facts.read_only;
}

const char *block_name(const struct block_device *d)
{
    return d->name;
}

const char *block_bus(const struct block_device *d)
{
    return d->facts.bus;
}

static int ask(struct block_device *d, const struct block_request *r)
{
    mutex_lock(&d->lock);
    spin_lock(&d->state);
    bool gone = d->gone;
    if (!gone) {
        d->request = *r;
        WRITE_ONCE(d->asked, true);
    }
    spin_unlock(&d->state);
    if (!gone) {
        waitq_wake_all(d->facts.wake);
        wait_event(&d->answered, !READ_ONCE(d->asked), WAIT_UNINTERRUPTIBLE,
                   WAIT_FOREVER);
    }
    int result = gone ? -EIO : READ_ONCE(d->result);
    mutex_unlock(&d->lock);
    return result;
}

int block_transfer(struct block_device *d, bool write, u64 sector, u32 count,
                   void *data)
{
    u64 sectors = d->facts.sectors;
    assert(count && count <= BLOCK_AT_ONCE && sector < sectors &&
           count <= sectors - sector);
    return ask(d, &(struct block_request){ .write = write,
                                           .sector = sector,
                                           .count = count,
                                           .data = data });
}

int block_flush(struct block_device *d)
{
    return ask(d, &(struct block_request){ .flush = true });
}

// --- partitions

static int read_sector(void *arg, u64 sector, void *data)
{
    return block_transfer(arg, false, sector, 1, data);
}

#define PART_NAME_BYTES (BLOCK_NAME_BYTES + 6u)

static void name_partition(const struct block_device *d,
                           const struct partition *p,
                           char name[PART_NAME_BYTES])
{
    if (p->number == PARTITION_WHOLE)
        strlcpy(name, d->name, PART_NAME_BYTES);
    else
        format(name, PART_NAME_BYTES, "%sp%u", d->name, p->number);
}

static void log_partitions(const struct block_device *d)
{
    const struct partition_table *t = d->partitions;
    if (t->damaged)
        log_printf("%s: %s: the first copy of its GPT is damaged; the second "
                   "is used\n",
                   d->facts.bus, d->name);
    if (t->more)
        log_printf("%s: %s: only its first %u partitions are used\n",
                   d->facts.bus, d->name, t->count);
    for (u32 i = 0; i < t->count && !d->facts.stick; i++) {
        const struct partition *p = &t->at[i];
        char name[PART_NAME_BYTES];
        name_partition(d, p, name);
        log_printf("%s: %s: %s, %u MiB%s%s\n", d->facts.bus, name,
                   partition_kind(p), (u32)(p->sectors / SECTORS_OF_MIB),
                   p->unfit ? ", not used: " : "", p->unfit ? p->unfit : "");
    }
}

const char *block_partitions(struct block_device *d,
                             const struct partition_table **out)
{
    mutex_lock(&d->reading);
    const char *why = NULL;
    if (!d->partitions) {
        struct partition_disk disk = { read_sector, d, d->facts.sectors };
        why = partition_read(&disk, &d->table);
        if (!why) {
            __atomic_store_n(&d->partitions, &d->table, __ATOMIC_RELEASE);
            log_partitions(d);
        }
    }
    *out = d->partitions;
    mutex_unlock(&d->reading);
    return why;
}

// The next disk that appeared since the last look; referenced.
static struct block_device *next_new(void)
{
    struct block_device *d, *found = NULL;
    mutex_lock(&disks_lock);
    list_for_each(d, &disks, node) {
        if (!found && !d->unfit && !d->looked)
            found = d;
    }
    if (found) {
        found->looked = true;
        found->refs++;
    }
    mutex_unlock(&disks_lock);
    return found;
}

void block_look(void)
{
    struct block_device *d;
    while ((d = next_new())) {
        const struct partition_table *t;
        const char *why = block_partitions(d, &t);
        if (why && !d->facts.stick)
            log_printf("%s: %s: %s\n", d->facts.bus, d->name, why);
        mutex_lock(&disks_lock);
        put(d);
        mutex_unlock(&disks_lock);
    }
}

// --- system.disks

static void put_partitions(const struct block_device *d,
                           void (*fn)(const struct sysinfo_disk *, void *),
                           void *arg)
{
    const struct partition_table *t = READ_ONCE(d->partitions);
    for (u32 i = 0; t && i < t->count; i++) {
        const struct partition *p = &t->at[i];
        if (p->number == PARTITION_WHOLE)
            continue;
        struct sysinfo_disk record = { .bytes = p->sectors * BLOCK_SECTOR };
        char name[PART_NAME_BYTES];
        name_partition(d, p, name);
        strlcpy(record.name, name, sizeof(record.name));
        strlcpy(record.bus, d->facts.bus, sizeof(record.bus));
        strlcpy(record.what, partition_kind(p), sizeof(record.what));
        strlcpy(record.state, p->unfit ? p->unfit : "", sizeof(record.state));
        fn(&record, arg);
    }
}

void disks_each(void (*fn)(const struct sysinfo_disk *, void *), void *arg)
{
    struct block_device *d;
    mutex_lock(&disks_lock);
    list_for_each(d, &disks, node) {
        struct sysinfo_disk record = { .bytes =
                                           d->facts.sectors * BLOCK_SECTOR };
        strlcpy(record.name, d->name, sizeof(record.name));
        strlcpy(record.bus, d->facts.bus, sizeof(record.bus));
        strlcpy(record.what, d->model, sizeof(record.what));
        const char *state = d->unfit ? d->unfit : d->taken ? "mounted" : "";
        strlcpy(record.state, state, sizeof(record.state));
        fn(&record, arg);
        put_partitions(d, fn, arg);
    }
    mutex_unlock(&disks_lock);
}
