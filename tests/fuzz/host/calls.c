// user/libprofile's readers of call traces: the file of cprofile -o, whose
// records are merged by path and by function, and the text of functions in
// files of traces.
// link: user/libprofile/call_paths.c user/libprofile/calls_file.c
// link: user/libprofile/functions.c
#define _GNU_SOURCE
#include "host.h"

#include <string.h>

#include "lib/crc32.h"
#include "user/libprofile/call_paths.h"
#include "user/libprofile/calls_file.h"
#include "user/libprofile/functions.h"

#define CRC_AT offsetof(struct calls_file_header, crc)

static void check_paths(const struct calls_file *f)
{
    struct call_paths p;
    u64 before = 0, after = 0;
    if (call_paths_merge(&p, &f->header.info, f->nodes, -1)) {
        REQUIRE(!p.list && !p.count);
        return;
    }
    REQUIRE(p.count <= f->header.info.records);
    for (u32 i = 0; i < f->header.info.records; i++)
        before += f->nodes[i].own + f->nodes[i].tracing;
    for (u32 i = 0; i < p.count; i++) {
        const struct call_path *path = &p.list[i];
        REQUIRE(path->parent <= i && (path->parent == i) == !path->depth);
        after += path->own + path->tracing;
    }
    REQUIRE(before == after); // modulo 2^64: removing loses no cycle
    struct call_paths functions = call_functions(&p);
    REQUIRE(functions.list && functions.count <= p.count);
    for (u32 i = 0; i < functions.count; i++)
        REQUIRE(call_functions_find(&functions, functions.list[i].function) ==
                i);
    call_paths_free(&functions);
    call_paths_free(&p);
}

static void check_arcs(const struct calls_file *f)
{
    u32 count;
    struct calls_arc *list =
        call_arcs_merge(&f->header.info, f->arcs, -1, &count);
    REQUIRE(list && count <= f->header.info.records);
    free(list);
}

static void check_functions(const u8 *bytes, size_t size)
{
    static const char *const patterns[] = { "a*", "!lib/", "sched_?" };
    struct functions f;
    if (functions_read(&f, (const char *)bytes, size)) {
        REQUIRE(!f.list && !f.count);
        return;
    }
    u32 *chosen = malloc((f.count + 1) * sizeof(*chosen));
    REQUIRE(chosen);
    REQUIRE(functions_choose(&f, &(struct function_choice){ patterns, 3, 16 },
                             chosen) <= f.count);
    for (u32 i = 0; i < f.count; i++)
        REQUIRE(functions_find(&f, f.list[i].address) == &f.list[i]);
    free(chosen);
    functions_free(&f);
}

// The file's checksum is made right, or nothing else would be read.
static void seal(u8 *bytes, size_t size)
{
    if (size < sizeof(struct calls_file_header))
        return;
    u32 crc = crc32(0, bytes + CRC_AT + 4, size - CRC_AT - 4);
    memcpy(bytes + CRC_AT, &crc, sizeof(crc));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    u8 *bytes = guarded(data, size);
    struct calls_file f;
    check_functions(bytes, size);
    seal(bytes, size);
    if (!calls_file_read(&f, bytes, size)) {
        REQUIRE(memchr(f.header.command, 0, sizeof(f.header.command)));
        REQUIRE(memchr(f.header.kernel, 0, sizeof(f.header.kernel)));
        if (f.nodes)
            check_paths(&f);
        else
            check_arcs(&f);
    }
    free(bytes);
    return 0;
}
