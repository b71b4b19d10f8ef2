// user/libread/symbols.c: the symbols of an ELF file, nm's text, or (first byte
// odd) a perf-PID.map. Compares symbols_find with a search through all symbols.
#include "host.h"

#include <string.h>

#include "user/libread/symbols.h"

// The table is sorted, and its innermost symbols nest.
static void check_table(const struct symbols *s, const u8 *bytes, size_t size)
{
    for (u32 i = 0; i < s->count; i++) {
        const struct symbol *y = &s->table[i];
        REQUIRE(!i || s->table[i - 1].start < y->start);
        REQUIRE(y->start <= y->end);
        REQUIRE((const u8 *)y->name >= bytes &&
                (const u8 *)y->name + y->name_size <= bytes + size);
        if (y->enclosing == SYMBOL_NONE)
            continue;
        REQUIRE(y->enclosing < i);
        REQUIRE(s->table[y->enclosing].end > y->start);
    }
}

static const struct symbol *search(const struct symbols *s, u32 address)
{
    for (u32 i = s->count; i > 0; i--) {
        const struct symbol *y = &s->table[i - 1];
        if (y->start <= address && address < y->end)
            return y;
    }
    return NULL;
}

static void check_find(const struct symbols *s)
{
    for (u32 i = 0; i < MIN(s->count, 64u); i++) {
        const struct symbol *y = &s->table[i];
        const u32 at[] = { y->start - 1, y->start, y->start + 1, y->end - 1,
                           y->end };
        for (u32 k = 0; k < ARRAY_SIZE(at); k++)
            REQUIRE(symbols_find(s, at[k]) == search(s, at[k]));
    }
    REQUIRE(symbols_find(s, 0) == search(s, 0));
    REQUIRE(symbols_find(s, UINT32_MAX) == search(s, UINT32_MAX));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    if (!size)
        return 0;
    bool map = data[0] & 1;
    u8 *bytes = guarded(data + 1, --size);
    u32 room =
        map ? symbols_room_of_map(bytes, size) : symbols_room(bytes, size);
    REQUIRE(room <= size + 1);
    // Sometimes there is too little room: then some symbols are left out.
    room = data[0] & 2 ? room / 2 : room;
    struct symbol *table = malloc(room * sizeof(*table) + 1);
    struct symbols s;
    REQUIRE(table);
    if (map)
        symbols_read_map(&s, bytes, size, table, room);
    else
        symbols_read(&s, bytes, size, table, room);
    REQUIRE(s.count <= room);
    check_table(&s, bytes, size);
    check_find(&s);
    free(table);
    free(bytes);
    return 0;
}
