// Looks nodes up and reads them: see sysinfo.h.
//
// The nodes are a few dozen constant structs: the search is linear and takes no
// lock.

#include "kernel/monitor/sysinfo.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/monitor/pattern.h"
#include "kernel/sync/lockdep.h"
#include "kernel/task/permission.h"
#include "lib/records.h"
#include "lib/string.h"

// The node of exactly this path. NULL with *above set: there are only nodes
// below the path; NULL with *above clear: the path is wrong.
static const struct sysinfo_node *find(const char *path, size_t len,
                                       u32 *number, bool *above)
{
    *above = false;
    LINKER_SET_FOR_EACH(const struct sysinfo_node, n, sysinfo_nodes) {
        const char *rest;
        switch (pattern_match((*n)->path, path, len, number, &rest)) {
        case PATTERN_EXACT:
            return *n;
        case PATTERN_ABOVE:
            *above = true;
            break;
        default:
            break;
        }
    }
    return NULL;
}

static u32 entry_size(const struct sysinfo_node *n)
{
    switch (SYSINFO_KIND(n->type)) {
    case SYSINFO_VALUE:
        return sizeof(u64);
    case SYSINFO_DATA:
        assert_checked(sysinfo_record_type(SYSINFO_WHAT(n->type)));
        return sysinfo_record_type(SYSINFO_WHAT(n->type))->size;
    default:
        return 1;
    }
}

static int make(const struct sysinfo_node *n, u32 number, bool size_only,
                struct chain *out)
{
    assert_may_sleep();
    int err;

    chain_init(out, entry_size(n));
    if (n->restricted && !may_profile_everything())
        return -EPERM;
    if (size_only && n->count) {
        out->count = n->count();
        return 0;
    }
    err = n->make(out, number);
    return err ? err : out->error;
}

static int data_of(const char *path, size_t len, bool size_only,
                   struct chain *out)
{
    bool above;
    u32 number;
    const struct sysinfo_node *n = find(path, len, &number, &above);

    if (n)
        return make(n, number, size_only, out);
    chain_init(out, 1);
    return above ? 0 : -ENOENT;
}

int sysinfo_data(const char *path, size_t len, struct chain *out)
{
    return data_of(path, len, false, out);
}

int sysinfo_size(const char *path, size_t len, struct chain *out)
{
    return data_of(path, len, true, out);
}

// Whether a path with a number in it exists: asks the number's node.
static int check_exists(const struct sysinfo_node *n, u32 number)
{
    assert_checked(n);
    struct chain out;
    int err;

    if (!strchr(n->path, '#'))
        return 0;
    err = make(n, number, false, &out);
    chain_free(&out);
    return err;
}

int sysinfo_type(const char *path, size_t len)
{
    bool above;
    u32 number;
    const struct sysinfo_node *n = find(path, len, &number, &above);
    int err;

    if (!n)
        return above ? SYSINFO_SUBTREE : -ENOENT;
    err = check_exists(n, number);
    return err ? err : (int)n->type;
}

// ---- children

static int put_numbers(const struct sysinfo_node *n, struct chain *out)
{
    assert(n->list);
    struct chain_cursor cur;
    struct chain numbers;
    int err;

    chain_init(&numbers, sizeof(u32));
    err = n->list(&numbers);
    if (!err)
        err = numbers.error;
    for (const u32 *i = chain_begin(&cur, &numbers); i && !err;
         i = chain_next(&cur)) {
        chain_printf(out, "%u", *i);
        chain_append(out, "", 1);
    }
    chain_free(&numbers);
    return err;
}

// Whether a node before `end` has put the component at `rest` already: several
// nodes may lie below it.
static bool is_repeated(const struct sysinfo_node *const *end, const char *path,
                        size_t len, const char *rest, size_t head)
{
    LINKER_SET_FOR_EACH(const struct sysinfo_node, n, sysinfo_nodes) {
        const char *other;
        u32 number;
        if (n == end)
            break;
        if (pattern_match((*n)->path, path, len, &number, &other) ==
                PATTERN_ABOVE &&
            pattern_head(other) == head && !memcmp(other, rest, head))
            return true;
    }
    return false;
}

int sysinfo_keys(const char *path, size_t len, struct chain *out)
{
    int err = sysinfo_type(path, len);

    chain_init(out, 1);
    if (err < 0)
        return err;
    LINKER_SET_FOR_EACH(const struct sysinfo_node, n, sysinfo_nodes) {
        const char *rest;
        u32 number;
        if (pattern_match((*n)->path, path, len, &number, &rest) !=
            PATTERN_ABOVE)
            continue;
        size_t head = pattern_head(rest);
        if (head == 1 && rest[0] == '#') {
            err = (*n)->list ? put_numbers(*n, out) : 0;
            if (err)
                return err;
        } else if (!is_repeated(n, path, len, rest, head)) {
            chain_append(out, rest, head);
            chain_append(out, "", 1);
        }
    }
    return out->error;
}
