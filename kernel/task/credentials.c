#include "kernel/task/credentials.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/task/task.h"
#include "kernel/task/users.h"
#include "lib/string.h"

bool owns(u32 uid)
{
    u32 euid = READ_ONCE(current_task()->euid);
    return !euid || euid == uid;
}

bool may_use_root_reserve(void)
{
    return !READ_ONCE(current_task()->uid);
}

// Before there are threads, and in interrupts, the kernel acts for no user.
bool frames_acts_for_root(void)
{
    return !current || this_cpu_read(irq_depth) || may_use_root_reserve();
}

bool is_in_group(u32 gid)
{
    return READ_ONCE(current_task()->egid) == gid || is_in_more_groups(gid);
}

bool is_in_more_groups(u32 gid)
{
    struct task *t = current_task();
    u32 flags = spin_lock_irq(&t->lock);
    bool found = false;
    for (u32 i = 0; i < t->group_count; i++)
        found |= t->groups[i] == gid;
    spin_unlock_irq(&t->lock, flags);
    return found;
}

// --- setting credentials ----------------------------------------------------

static bool is_one_of(u32 id, const struct id_triple *ids)
{
    return id == ID_UNCHANGED || id == ids->real || id == ids->effective ||
           id == ids->saved;
}

static u32 chosen(u32 id, u32 otherwise)
{
    return id == ID_UNCHANGED ? otherwise : id;
}

// As on Linux, the parent's end then sends it no signal that another user
// chose.
static void guard(struct task *t)
{
    spin_assert_held(&t->lock);
    WRITE_ONCE(t->guarded, true);
    WRITE_ONCE(t->parent_death_signal, 0);
}

// A task whose effective id changes may hold secrets of the previous user: it
// is guarded from its new user until the next exec.
static void set(struct task *t, u32 *real, u32 *effective, u32 *saved,
                struct id_triple ids)
{
    spin_assert_held(&t->lock);
    if (chosen(ids.effective, *effective) != *effective)
        guard(t);
    WRITE_ONCE(*real, chosen(ids.real, *real));
    WRITE_ONCE(*effective, chosen(ids.effective, *effective));
    WRITE_ONCE(*saved, chosen(ids.saved, *saved));
}

static int change(u32 *real, u32 *effective, u32 *saved, struct id_triple ids)
{
    struct task *t = current_task();
    u32 flags = spin_lock_irq(&t->lock);
    struct id_triple now = { *real, *effective, *saved };
    bool may = !t->euid ||
               (is_one_of(ids.real, &now) && is_one_of(ids.effective, &now) &&
                is_one_of(ids.saved, &now));
    int err = may ? 0 : -EPERM;
    if (may && real == &t->uid && !payer_set(t, chosen(ids.real, *real)))
        err = -EAGAIN;
    if (!err)
        set(t, real, effective, saved, ids);
    spin_unlock_irq(&t->lock, flags);
    return err;
}

int credentials_set_users(struct id_triple ids)
{
    struct task *t = current_task();
    u32 flags = spin_lock_irq(&tasks_lock);
    int err = change(&t->uid, &t->euid, &t->suid, ids);
    spin_unlock_irq(&tasks_lock, flags);
    return err;
}

int credentials_set_groups(struct id_triple ids)
{
    struct task *t = current_task();
    return change(&t->gid, &t->egid, &t->sgid, ids);
}

int credentials_set_more_groups(const u32 *groups, u32 count)
{
    struct task *t = current_task();
    if (!is_root())
        return -EPERM;
    if (count > GROUPS_MAX)
        return -EINVAL;
    u32 flags = spin_lock_irq(&t->lock);
    memcpy(t->groups, groups, count * sizeof(*groups));
    t->group_count = count;
    spin_unlock_irq(&t->lock, flags);
    return 0;
}

void credentials_inherit(struct task *child, struct task *parent)
{
    u32 flags = spin_lock_irq(&parent->lock);
    child->uid = parent->uid;
    bool found = payer_set(child, child->uid);
    assert(found); // the parent has it
    child->euid = parent->euid;
    child->suid = parent->suid;
    child->gid = parent->gid;
    child->egid = parent->egid;
    child->sgid = parent->sgid;
    child->guarded = parent->guarded;
    child->group_count = parent->group_count;
    memcpy(child->groups, parent->groups, sizeof(child->groups));
    spin_unlock_irq(&parent->lock, flags);
}

void credentials_exec(u32 euid, u32 egid, bool guarded)
{
    struct task *t = current_task();
    u32 flags = spin_lock_irq(&t->lock);
    WRITE_ONCE(t->euid, euid);
    WRITE_ONCE(t->egid, egid);
    WRITE_ONCE(t->suid, euid);
    WRITE_ONCE(t->sgid, egid);
    if (guarded)
        guard(t);
    spin_unlock_irq(&t->lock, flags);
}

// --- permission checks ------------------------------------------------------

bool may_signal(const struct task *t, int sig)
{
    const struct task *self = current_task();
    u32 euid = READ_ONCE(self->euid), uid = READ_ONCE(self->uid);
    u32 its = READ_ONCE(t->uid), saved = READ_ONCE(t->suid);
    if (!euid || t == self || euid == its || euid == saved || uid == its ||
        uid == saved)
        return true;
    return sig == SIGCONT && READ_ONCE(t->sid) == READ_ONCE(self->sid);
}

bool may_schedule(const struct task *t)
{
    return owns(READ_ONCE(t->uid)) || owns(READ_ONCE(t->euid));
}

bool credentials_may_inspect(const struct task *who, const struct task *t)
{
    u32 uid = READ_ONCE(who->euid), gid = READ_ONCE(who->egid);
    if (!uid || t == who)
        return true;
    return !READ_ONCE(t->guarded) && t != &kernel_task &&
           uid == READ_ONCE(t->uid) && uid == READ_ONCE(t->euid) &&
           uid == READ_ONCE(t->suid) && gid == READ_ONCE(t->gid) &&
           gid == READ_ONCE(t->egid) && gid == READ_ONCE(t->sgid);
}

bool may_inspect(const struct task *t)
{
    return credentials_may_inspect(current_task(), t);
}
