// Disks on USB; see disk.h and storage.h.
//
// A request is written by a task, under the disk's mutex, and answered by the
// controller's thread. disk->state guards its states; who sees the disk gone
// under it asks nothing any more.
#include "kernel/usb/disk.h"
#include "kernel/base/errno.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/mutex.h"
#include "kernel/usb/storage.h"
#include "lib/list.h"
#include "lib/string.h"

struct usb_disk {
    struct list node;
    u32 refs; // the driver's, and the taker's; disks_lock
    bool taken;
    char path[DEVICE_PATH_MAX];
    u32 sectors;
    struct mutex lock; // of one request
    struct waitq answered;
    struct waitq *wake;
    struct spinlock state;
    bool gone, asked;
    struct disk_request request;
    int result;
};

static struct mutex disks_lock = MUTEX_INIT(disks_lock, "disks");
static struct list disks = LIST_INIT(disks);

// --- the driver's side

struct usb_disk *disk_add(const char *path, u32 sectors, struct waitq *wake)
{
    struct usb_disk *k = kzalloc(sizeof(*k));
    if (!k)
        return NULL;
    strlcpy(k->path, path, sizeof(k->path));
    k->sectors = sectors;
    k->wake = wake;
    k->refs = 1;
    mutex_init(&k->lock, "disk");
    waitq_init(&k->answered, "disk");
    spin_init(&k->state, "disk");
    mutex_lock(&disks_lock);
    list_push_back(&disks, &k->node);
    mutex_unlock(&disks_lock);
    usb_disks_changed();
    return k;
}

static void put(struct usb_disk *k)
{
    mutex_assert_held(&disks_lock);
    if (--k->refs == 0)
        kfree(k);
}

void disk_remove(struct usb_disk *k)
{
    spin_lock(&k->state);
    k->gone = true;
    if (k->asked)
        k->result = -EIO;
    k->asked = false;
    spin_unlock(&k->state);
    waitq_wake_all(&k->answered);
    mutex_lock(&disks_lock);
    list_remove(&k->node);
    put(k);
    mutex_unlock(&disks_lock);
    usb_disks_changed();
}

bool disk_asked(const struct usb_disk *k)
{
    return READ_ONCE(k->asked);
}

bool disk_request(struct usb_disk *k, struct disk_request *r)
{
    spin_lock(&k->state);
    bool asked = k->asked;
    *r = k->request;
    spin_unlock(&k->state);
    return asked;
}

void disk_answer(struct usb_disk *k, int result)
{
    spin_lock(&k->state);
    k->result = result;
    WRITE_ONCE(k->asked, false);
    spin_unlock(&k->state);
    waitq_wake_all(&k->answered);
}

// --- the other side

struct usb_disk *usb_disk_take(void)
{
    struct usb_disk *k, *found = NULL;
    mutex_lock(&disks_lock);
    list_for_each(k, &disks, node) {
        if (!k->taken && !found)
            found = k;
    }
    if (found) {
        found->taken = true;
        found->refs++;
    }
    mutex_unlock(&disks_lock);
    return found;
}

void usb_disk_put(struct usb_disk *k, bool again)
{
    mutex_lock(&disks_lock);
    k->taken = !again;
    put(k);
    mutex_unlock(&disks_lock);
}

bool usb_disk_gone(const struct usb_disk *k)
{
    return READ_ONCE(k->gone);
}

const char *usb_disk_path(const struct usb_disk *k)
{
    return k->path;
}

u32 usb_disk_sectors(const struct usb_disk *k)
{
    return k->sectors;
}

static int ask(struct usb_disk *k, const struct disk_request *r)
{
    mutex_lock(&k->lock);
    spin_lock(&k->state);
    bool gone = k->gone;
    if (!gone) {
        k->request = *r;
        WRITE_ONCE(k->asked, true);
    }
    spin_unlock(&k->state);
    if (!gone) {
        waitq_wake_all(k->wake);
        wait_event(&k->answered, !READ_ONCE(k->asked), WAIT_UNINTERRUPTIBLE,
                   WAIT_FOREVER);
    }
    int result = gone ? -EIO : READ_ONCE(k->result);
    mutex_unlock(&k->lock);
    return result;
}

int usb_disk_transfer(struct usb_disk *k, bool write, u32 sector, u32 count,
                      void *data)
{
    assert(count && count <= DISK_AT_ONCE && sector < k->sectors &&
           count <= k->sectors - sector);
    return ask(k, &(struct disk_request){ .write = write,
                                          .sector = sector,
                                          .count = count,
                                          .data = data });
}

int usb_disk_flush(struct usb_disk *k)
{
    return ask(k, &(struct disk_request){ .flush = true });
}
