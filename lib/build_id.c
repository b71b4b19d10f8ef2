#include "lib/build_id.h"

#include "lib/string.h"

#define NT_GNU_BUILD_ID 3

struct note {
    u32 name_size, size, type;
};

u32 build_id_find(const void *notes, u32 size, u8 out[BUILD_ID_MAX])
{
    const u8 *at = notes;
    struct note n;
    while (size >= sizeof(n)) {
        memcpy(&n, at, sizeof(n));
        at += sizeof(n);
        size -= sizeof(n);
        if (n.name_size > size || n.size > size)
            return 0;
        u32 name = ALIGN_UP(n.name_size, 4u), id = ALIGN_UP(n.size, 4u);
        if (name > size || n.size > size - name)
            return 0;
        if (n.type == NT_GNU_BUILD_ID && n.name_size == 4 &&
            !memcmp(at, "GNU", 4) && n.size <= BUILD_ID_MAX) {
            memcpy(out, at + name, n.size);
            return n.size;
        }
        if (id > size - name) // the last note may end unpadded
            return 0;
        at += name + id;
        size -= name + id;
    }
    return 0;
}
