// Looks nodes up and reads them: see sysinfo.h.
//
// The nodes are a few dozen constant structs, sorted by path at the start: no
// lock is taken.

#include "kernel/monitor/sysinfo.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/monitor/pattern.h"
#include "kernel/sync/lockdep.h"
#include "kernel/task/permission.h"
#include "lib/records.h"
#include "lib/string.h"

#define NODES_MAX 128u

static const struct sysinfo_node *nodes[NODES_MAX];
static u32 node_count;

void sysinfo_start(void)
{
    LINKER_SET_FOR_EACH(const struct sysinfo_node, n, sysinfo_nodes) {
        assert(node_count < NODES_MAX);
        u32 at = node_count++;
        for (; at && strcmp(nodes[at - 1]->path, (*n)->path) > 0; at--)
            nodes[at] = nodes[at - 1];
        nodes[at] = *n;
    }
}

// The first node that does not sort before the path: the path's own, if there
// is one, or one below it.
static u32 first_from(const char *path, size_t len)
{
    u32 low = 0, high = node_count;
    while (low < high) {
        u32 middle = (low + high) / 2, number;
        const char *rest;
        if (pattern_match(nodes[middle]->path, path, len, &number, &rest) ==
            PATTERN_BEFORE)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The node of exactly this path. NULL with *above set: there are only nodes
// below the path; NULL with *above clear: the path is wrong.
static const struct sysinfo_node *find(const char *path, size_t len,
                                       u32 *number, bool *above)
{
    u32 first = first_from(path, len);
    const char *rest;
    *above = false;
    if (first == node_count)
        return NULL;
    enum pattern_result result =
        pattern_match(nodes[first]->path, path, len, number, &rest);
    *above = result == PATTERN_ABOVE;
    return result == PATTERN_EXACT ? nodes[first] : NULL;
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

int sysinfo_keys(const char *path, size_t len, struct chain *out)
{
    int err = sysinfo_type(path, len);
    const char *last = "";
    size_t last_head = 0;
    chain_init(out, 1);
    if (err < 0)
        return err;
    u32 i = first_from(path, len);
    for (i += SYSINFO_KIND(err) != SYSINFO_SUBTREE; i < node_count; i++) {
        const char *rest;
        u32 number;
        if (pattern_match(nodes[i]->path, path, len, &number, &rest) !=
            PATTERN_ABOVE)
            break;
        size_t head = pattern_head(rest);
        if (head == last_head && !memcmp(last, rest, head))
            continue; // several nodes lie below it
        last = rest;
        last_head = head;
        if (rest[0] != '#') {
            chain_append(out, rest, head);
            chain_append(out, "", 1);
        } else if (nodes[i]->list) {
            err = put_numbers(nodes[i], out);
            if (err)
                return err;
        }
    }
    return out->error;
}
