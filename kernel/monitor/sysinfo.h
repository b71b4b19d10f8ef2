// The sysinfo tree: nodes, and how they are read.
//
// A node is a static struct and one registration line; its content is generated
// at each read. Paths, kinds and records: <strobe/sysinfo.h>.
//
//     static int make_load(struct chain *out, u32 number) { ... }
//     SYSINFO_NODE(load, .path = "system.load",
//                  .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_LOAD),
//                  .make = make_load);
#pragma once

#include <strobe/sysinfo.h>

#include "kernel/mm/chain.h"
#include "lib/set.h"

struct sysinfo_node {
    // A pattern (pattern.h): with the component "#" it matches many nodes.
    const char *path;
    u32 type; // SYSINFO_TYPE
    // Appends the node's content: records (SYSINFO_DATA), text, or one u64.
    // `number` is the number that "#" matched, else 0. Thread context; may
    // sleep. 0; -ENOENT: there is no such number; -ENOMEM.
    int (*make)(struct chain *out, u32 number);
    // The number of records, where it is known without making them. May be
    // NULL.
    u32 (*count)(void);
    // For a path that ends in "#": appends the valid numbers, as u32.
    int (*list)(struct chain *numbers);
    // Only for root and the users of profile_users=; others get -EPERM.
    bool restricted;
};

#define SYSINFO_NODE(id, ...)                                             \
    static const struct sysinfo_node sysinfo_node_##id = { __VA_ARGS__ }; \
    LINKER_SET_ADD(sysinfo_nodes, sysinfo_node_##id)

// Once, before all that follows.
void sysinfo_start(void);
// The system calls' work, on `len` bytes of path. Each initialises `out`, which
// is to be freed in any case. 0, -ENOENT, -ENOMEM, -EPERM.
int sysinfo_data(const char *path, size_t len, struct chain *out);
int sysinfo_keys(const char *path, size_t len, struct chain *out);
// As sysinfo_data, but the number of entries alone is right.
int sysinfo_size(const char *path, size_t len, struct chain *out);
// The type word (positive), or -ENOENT, -ENOMEM.
int sysinfo_type(const char *path, size_t len);
