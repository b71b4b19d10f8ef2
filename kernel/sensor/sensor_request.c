// What a sensor is: a program's request, and the header that the kernel writes.

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "kernel/sensor/sensor.h"
#include "lib/string.h"

#include "arch/clock.h"

// The description, with a NUL at its end.
static int copy_text(char *text, const struct sensor_request *r)
{
    if (r->text_bytes >= SENSOR_TEXT_MAX)
        return -E2BIG;
    if (copy_from_user(text, (u32)r->text, r->text_bytes))
        return -EFAULT;
    text[r->text_bytes] = '\0';
    return strlen(text) == r->text_bytes ? 0 : -EINVAL;
}

static int give_type(struct sensor *s, const struct sensor_request *r,
                     u32 data_bytes)
{
    char *text = kmalloc(SENSOR_TEXT_MAX);
    if (!text)
        return -ENOMEM;
    struct tmpfs_node *n = tmpfs_node(s->vnode);
    int err = copy_text(text, r);
    if (!err) {
        mutex_lock(&n->write_lock);
        err = sensor_open_for(s, &r->layout, data_bytes, text);
        mutex_unlock(&n->write_lock);
    }
    kfree(text);
    return err;
}

static int check_path(const struct sensor *s)
{
    char path[SENSOR_PATH_MAX + 1];
    int len = vfs_path(s->vnode, path, sizeof(path));
    return len == -ERANGE ? -ENAMETOOLONG : len < 0 ? len : 0;
}

int sensor_request(struct sensor *s, u32 arg)
{
    struct sensor_request r;
    if (copy_from_user(&r, arg, sizeof(r)))
        return -EFAULT;
    u32 data_bytes = sensor_data_bytes(&r.layout);
    if (!data_bytes || (r.layout.type == SENSOR_RING && r.layout.ring.trace))
        return -EINVAL;
    int err = check_path(s);
    if (!err)
        err = give_type(s, &r, data_bytes);
    if (!err)
        sensor_set_named(s, true);
    return err;
}

static struct sensor_wide wide(u64 n)
{
    return (struct sensor_wide){ (u32)n, (u32)(n >> 32) };
}

void sensor_header_fill(struct sensor_header *h,
                        const struct sensor_layout *layout, const char *text,
                        u32 owner)
{
    h->magic = SENSOR_MAGIC;
    h->version = SENSOR_VERSION;
    h->header_bytes = sizeof(*h);
    h->data_bytes = sensor_data_bytes(layout);
    h->layout = *layout;
    h->owner = owner;
    h->created_ns = wide(clock_now_ns());
    h->tsc_hz = wide(clock_tsc_hz());
    strlcpy(h->text, text, sizeof(h->text));
}

void sensor_header_close(struct sensor_header *h)
{
    h->closed_ns = wide(clock_now_ns());
}
