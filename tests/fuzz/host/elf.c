// kernel/exec/elf_load.c: the mappings of an accepted program match its program
// headers, which are read here a second time.
// link: kernel/exec/elf_load.c
#include "host.h"

#include <string.h>

#include "kernel/base/errno.h"
#include "kernel/exec/elf_load.h"
#include "kernel/fs/vfs.h"
#include "lib/elf.h"

#define AREAS_MAX 256
#define STACK_ROOM MIB(16) // below USER_END
#define PIE_AT 0x56555000u
#define SHIFTS 2048u // maximum shift of such a program, in pages

struct mapped {
    u32 start, end, prot, offset;
    bool of_file;
};

static struct mapped areas[AREAS_MAX];
static u32 area_count;
static const u8 *file_bytes;
static struct vnode file_vnode;

int vnode_read(struct vnode *v, u64 pos, void *buf, size_t n)
{
    if (pos >= v->size)
        return 0;
    n = MIN(n, (size_t)(v->size - pos));
    memcpy(buf, file_bytes + pos, n);
    return (int)n;
}

static const struct mapped *area_at(u32 address)
{
    for (u32 i = 0; i < area_count; i++) {
        if (areas[i].start <= address && address < areas[i].end)
            return &areas[i];
    }
    return NULL;
}

int aspace_map(struct aspace *as UNUSED, u32 hint, u32 length, u32 prot,
               u32 area_flags UNUSED, u32 map_flags, struct vnode *vn,
               u64 offset, u32 *addr)
{
    REQUIRE(length && !(hint % PAGE_SIZE) && !(offset % PAGE_SIZE));
    REQUIRE(map_flags == MAP_NO_REPLACE && !(length % PAGE_SIZE));
    REQUIRE(hint >= PAGE_SIZE && length <= USER_END - STACK_ROOM &&
            hint <= USER_END - STACK_ROOM - length);
    REQUIRE(!vn || offset + length < vn->size + PAGE_SIZE);
    for (u32 i = 0; i < area_count; i++) {
        if (hint < areas[i].end && areas[i].start < hint + length)
            return -EEXIST;
    }
    REQUIRE(area_count < AREAS_MAX);
    areas[area_count++] =
        (struct mapped){ hint, hint + length, prot, (u32)offset, vn != NULL };
    *addr = hint;
    return 0;
}

// Only zeros are written, to the rest of a file's last page.
int aspace_write(struct aspace *as UNUSED, u32 addr, const void *src, size_t n)
{
    const struct mapped *first = area_at(addr), *last = area_at(addr + n - 1);
    REQUIRE(n && first && first == last && first->prot & PROT_W);
    for (size_t i = 0; i < n; i++)
        REQUIRE(!((const u8 *)src)[i]);
    return (int)n;
}

static void check_segment(const struct elf_segment *s, u32 bias)
{
    u32 start = s->vaddr + bias;
    REQUIRE((u64)s->offset + s->filesz <= file_vnode.size);
    for (u32 at = start, n = 0; n < s->filesz;
         n += PAGE_SIZE, at += PAGE_SIZE) {
        const struct mapped *m = area_at(at);
        REQUIRE(m && m->of_file);
        REQUIRE(m->offset + (at - m->start) == s->offset + n);
    }
    if (s->memsz > s->filesz)
        REQUIRE(area_at(start + s->filesz) && area_at(start + s->memsz - 1));
}

static void check(const struct elf_image *image, u32 shift)
{
    struct elf_header h;
    memcpy(&h, file_bytes, sizeof(h));
    u32 bias = h.type == ELF_TYPE_DYN ? PIE_AT + shift : 0;
    REQUIRE(image->entry == h.entry + bias && image->entry < image->end);
    REQUIRE(!(image->end % PAGE_SIZE) && image->build_id_size <= BUILD_ID_MAX);
    for (u32 i = 0; i < h.phnum; i++) {
        struct elf_segment s;
        memcpy(&s, file_bytes + h.phoff + i * sizeof(s), sizeof(s));
        REQUIRE(s.type != ELF_PT_INTERP);
        if (s.type == ELF_PT_LOAD && s.memsz)
            check_segment(&s, bias);
    }
    for (u32 i = 0; i < area_count; i++)
        REQUIRE(areas[i].end <= image->end);
    const struct mapped *m = image->phdr ? area_at(image->phdr) : NULL;
    REQUIRE(!image->phdr || (m && m->of_file));
    if (m)
        REQUIRE(m->offset + (image->phdr - m->start) == h.phoff);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    static struct aspace space;
    struct elf_image image;
    u8 *bytes = guarded(data, size);
    file_bytes = bytes;
    file_vnode = (struct vnode){ .size = size };
    area_count = 0;
    u32 shift = (u32)size % SHIFTS * PAGE_SIZE;
    int err = elf_load(&space, &file_vnode, shift, &image);
    REQUIRE(!err || err == -ENOEXEC);
    if (!err)
        check(&image, shift);
    free(bytes);
    return 0;
}
