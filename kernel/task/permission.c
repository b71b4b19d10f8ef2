#include "kernel/task/permission.h"

#include "kernel/base/cmdline.h"
#include "kernel/base/log.h"
#include "kernel/task/task.h"
#include "lib/string.h"

KERNEL_ARG(profile_users,
           "profile_users=all or UID,UID,...: the users that may "
           "profile everything, as root may");

// Parses the number at *list, and moves *list behind it and a comma. False:
// syntax error.
static bool next_user(const char **list, u32 *uid)
{
    u64 value = 0;
    const char *at = *list;
    for (; *at >= '0' && *at <= '9' && value <= UINT32_MAX; at++)
        value = value * 10 + (u32)(*at - '0');
    if (at == *list || value > UINT32_MAX || (*at && *at != ','))
        return false;
    *uid = (u32)value;
    *list = *at ? at + 1 : at;
    return true;
}

static void complain_once(void)
{
    static u32 done;
    if (!__atomic_exchange_n(&done, 1, __ATOMIC_RELAXED))
        log_printf(
            "profile_users=%s: invalid, use \"all\" or user ids separated "
            "by commas\n",
            arg_profile_users.value);
}

static bool is_listed(u32 uid)
{
    const char *list = arg_profile_users.value;
    if (!arg_profile_users.present || strcmp(list, "all") == 0)
        return arg_profile_users.present;
    u32 user;
    while (next_user(&list, &user)) {
        if (user == uid)
            return true;
        if (!*list)
            return false;
    }
    complain_once();
    return false;
}

bool may_profile_everything(void)
{
    return is_root() || is_listed(READ_ONCE(current_task()->euid));
}

bool may_profile(const struct task *t)
{
    return may_inspect(t) || may_profile_everything();
}
