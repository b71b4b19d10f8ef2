// Finds the function that contains an address, with symbol tables from the
// image of an ELF32/i386 file or from the output of `nm`.
//
// The image is not trusted: only bytes inside it are read. Nothing is
// allocated: the caller provides the memory, and names point into the image,
// which must live as long as the table. Any context.
//
//     u32 room = symbols_room(image, size);
//     struct symbol *table = malloc(room * sizeof(*table));
//     enum symbols_status status = symbols_read(&s, image, size, table, room);
//     const struct symbol *symbol = symbols_find(&s, address);
#pragma once

#include "lib/types.h"

struct symbol {
    u32 start, end;   // addresses, end exclusive
    const char *name; // name_size bytes, not terminated: print with %.*s
    u32 name_size;
    u32 enclosing; // index of the symbol around this one, SYMBOL_NONE
    u8 flags;
};
#define SYMBOL_NONE UINT32_MAX

struct symbols {
    const struct symbol *table; // ascending by start, one for each start
    u32 count;
};

enum symbols_status {
    SYMBOLS_OK,
    SYMBOLS_STRIPPED, // valid, but without code symbols
    SYMBOLS_CORRUPT,  // an ELF file whose symbol table cannot be read
    SYMBOLS_FOREIGN,  // neither ELF32/i386 nor nm's text
};

// The number of entries that `table` needs; 0 when there is nothing to read.
u32 symbols_room(const void *image, size_t size);

// Fills `table` (`room` entries; further symbols are dropped) and `out`, which
// is valid, possibly empty, for every result.
//
// Functions and labels of executable sections are kept, except local labels
// (.L...), mapping symbols ($...), and labels inside a function that has a
// size. A symbol without a size extends to the next one or to the end of its
// section. Of several names of one address a function is preferred to a label,
// then a global name to a local one, then the shortest, then the first in
// alphabetical order.
enum symbols_status symbols_read(struct symbols *out, const void *image,
                                 size_t size, struct symbol *table, u32 room);

// The same for a perf-PID.map: lines "START SIZE NAME", the numbers
// hexadecimal, of code generated at run time. Malformed lines are skipped; of
// several lines with one start the last one is used, because the code there may
// have been generated again.
u32 symbols_room_of_map(const void *text, size_t size);
void symbols_read_map(struct symbols *out, const void *text, size_t size,
                      struct symbol *table, u32 room);

// The innermost symbol around `address`, or NULL. O(log n).
const struct symbol *symbols_find(const struct symbols *s, u32 address);
