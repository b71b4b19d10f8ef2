// The file's pages are mapped, not copied: text is shared with the page cache,
// data is copied on write.

#include "kernel/exec/elf_load.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/vfs.h"
#include "lib/elf.h"
#include "lib/string.h"

#define SEGMENTS_MAX 64
#define NOTES_MAX 256        // bytes read from a segment of notes
#define PIE_BASE 0x56555000u // where Linux puts a position-independent program

static int check_header(const struct elf_header *h)
{
    if (memcmp(h->ident, ELF_MAGIC, 4) || h->ident[4] != ELF_CLASS32 ||
        h->ident[5] != ELF_DATA_LSB || h->machine != ELF_MACHINE_386 ||
        (h->type != ELF_TYPE_EXEC && h->type != ELF_TYPE_DYN))
        return -ENOEXEC;
    if (h->phentsize != sizeof(struct elf_segment) || !h->phnum ||
        h->phnum > SEGMENTS_MAX)
        return -ENOEXEC;
    return 0;
}

static int check_segment(const struct elf_segment *s, u64 file_size, u32 bias)
{
    u64 start = (u64)s->vaddr + bias;
    if (s->filesz > s->memsz || (u64)s->offset + s->filesz > file_size)
        return -ENOEXEC;
    if (start < PAGE_SIZE || start + s->memsz > USER_END - MIB(16))
        return -ENOEXEC;
    // The page offset in the file must equal that in memory, or it cannot be
    // mapped (gABI, chapter 5: p_align).
    if ((s->vaddr - s->offset) & (PAGE_SIZE - 1))
        return -ENOEXEC;
    return 0;
}

static u32 segment_prot(u32 flags)
{
    return (flags & ELF_PF_R ? PROT_R : 0) | (flags & ELF_PF_W ? PROT_W : 0) |
           (flags & ELF_PF_X ? PROT_X : 0);
}

static int map_anonymous(struct aspace *as, u32 start, u32 end, u32 prot)
{
    assert_checked(!(start & ~PAGE_MASK) && !(end & ~PAGE_MASK));
    u32 addr;
    if (end <= start)
        return 0;
    return aspace_map(as, start, end - start, prot, 0, MAP_NO_REPLACE, NULL, 0,
                      &addr);
}

static int map_segment(struct aspace *as, struct vnode *v,
                       const struct elf_segment *s, u32 bias)
{
    assert_checked(s->memsz >= s->filesz && s->memsz); // check_segment
    u32 start = s->vaddr + bias, page = start & PAGE_MASK;
    u32 file_end = start + s->filesz, mem_end = start + s->memsz;
    u32 prot = segment_prot(s->flags), addr;
    u32 mapped_end = page;
    if (s->filesz) {
        mapped_end = ALIGN_UP(file_end, PAGE_SIZE);
        int err = aspace_map(as, page, mapped_end - page, prot, 0,
                             MAP_NO_REPLACE, v, s->offset & PAGE_MASK, &addr);
        if (err)
            return err == -EEXIST ? -ENOEXEC : err;
    }
    int err = map_anonymous(as, mapped_end, ALIGN_UP(mem_end, PAGE_SIZE), prot);
    if (err)
        return err == -EEXIST ? -ENOEXEC : err;
    // The rest of the last file page is the beginning of .bss: zero it.
    u32 tail = MIN(mem_end, mapped_end) - file_end;
    if (mem_end <= file_end || !s->filesz || !tail || !(prot & PROT_W))
        return 0;
    static const u8 zeros[256];
    while (tail) {
        u32 n = MIN(tail, (u32)sizeof(zeros));
        if (aspace_write(as, file_end, zeros, n) != (int)n)
            return -ENOMEM;
        file_end += n;
        tail -= n;
    }
    return 0;
}

// The address of the program headers: in the segment that contains them.
static u32 find_phdr(const struct elf_header *h, const struct elf_segment *s,
                     u32 bias)
{
    for (u32 i = 0; i < h->phnum; i++) {
        if (s[i].type == ELF_PT_LOAD && s[i].offset <= h->phoff &&
            h->phoff - s[i].offset < s[i].filesz)
            return s[i].vaddr + bias + (h->phoff - s[i].offset);
    }
    return 0;
}

// A program may have no notes, or malformed ones: neither is an error.
static void find_build_id(struct vnode *v, const struct elf_segment *s,
                          struct elf_image *out)
{
    u8 notes[NOTES_MAX];
    if (out->build_id_size)
        return;
    int n = vnode_read(v, s->offset, notes, MIN(s->filesz, (u32)NOTES_MAX));
    if (n > 0)
        out->build_id_size = build_id_find(notes, (u32)n, out->build_id);
}

int elf_load(struct aspace *as, struct vnode *v, u32 shift,
             struct elf_image *out)
{
    assert_may_sleep();
    struct elf_header h;
    struct elf_segment segments[SEGMENTS_MAX];
    int n = vnode_read(v, 0, &h, sizeof(h));
    if (n != (int)sizeof(h))
        return n < 0 ? n : -ENOEXEC;
    int err = check_header(&h);
    if (err)
        return err;
    u32 size = h.phnum * (u32)sizeof(segments[0]);
    n = vnode_read(v, h.phoff, segments, size);
    if (n != (int)size)
        return n < 0 ? n : -ENOEXEC;

    out->build_id_size = 0;
    out->executes_stack = false;
    u32 bias = h.type == ELF_TYPE_DYN ? PIE_BASE + shift : 0, end = 0;
    for (u32 i = 0; i < h.phnum; i++) {
        const struct elf_segment *s = &segments[i];
        if (s->type == ELF_PT_INTERP) // dynamically linked: not supported
            return -ENOEXEC;
        if (s->type == ELF_PT_GNU_STACK)
            out->executes_stack = s->flags & ELF_PF_X;
        if (s->type == ELF_PT_NOTE)
            find_build_id(v, s, out);
        if (s->type != ELF_PT_LOAD || (!s->memsz && !s->filesz))
            continue;
        err = check_segment(s, v->size, bias);
        if (!err)
            err = map_segment(as, v, s, bias);
        if (err)
            return err;
        end = MAX(end, ALIGN_UP(s->vaddr + bias + s->memsz, PAGE_SIZE));
    }
    if (!end || h.entry + bias >= end)
        return -ENOEXEC;
    out->load_bias = bias;
    out->entry = h.entry + bias;
    out->phdr = find_phdr(&h, segments, bias);
    out->phnum = h.phnum;
    out->end = end;
    return 0;
}
