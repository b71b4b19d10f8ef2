// system.users: what each user holds.

#include "kernel/task/users.h"
#include "kernel/mm/frame.h"
#include "kernel/monitor/sysinfo.h"

static void put_user(struct chain *out, const struct user_statistics *f)
{
    struct sysinfo_user *record = chain_add(out);
    if (!record)
        return;
    record->uid = f->uid;
    record->tasks = f->tasks;
    record->threads = f->threads;
    record->memory = (u64)f->pages * PAGE_SIZE;
    record->held = f->held;
    record->share = f->uid ? user_share() : 0; // root has no limit
}

static int make_users(struct chain *out, u32 number UNUSED)
{
    struct user_statistics f;
    for (u32 uid = 0; users_next(uid, &f); uid = f.uid + 1)
        put_user(out, &f);
    return 0;
}

SYSINFO_NODE(users, .path = "system.users",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_USER),
             .make = make_users);
