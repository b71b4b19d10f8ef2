// The tags of Multiboot 2 (specification 2.0, 3.6) into boot_info. Pure code:
// it reads only the given bytes, and keeps no pointer to them.
//
// A tag that is shorter than its fields is skipped, with a problem; one that
// claims to be longer than the rest ends the parsing. Unknown tags are skipped.
// UEFI machines have no RSDP in the BIOS's area: tags 14 and 15 are copies of
// it.

#include "arch/i386/boot/boot_fill.h"
#include "lib/string.h"

#define RSDP_SIZE_OLD 20u
#define RSDP_SIZE_NEW 36u

#define PIXELS_MAX 32768u // a side of a framebuffer
#define COLOUR_BITS_MAX 8u

static void parse_map(const struct mb2_mmap *map)
{
    if (map->entry_size < sizeof(struct mb2_mmap_entry)) {
        boot_problem("its memory map has entries of %u bytes: skipped",
                     map->entry_size);
        return;
    }
    u32 left = map->tag.size - sizeof(*map);
    const u8 *p = map->entries;
    for (; left >= map->entry_size; left -= map->entry_size) {
        struct mb2_mmap_entry e;
        memcpy(&e, p, sizeof(e));
        boot_add_memory(e.base, e.length, e.type);
        p += map->entry_size;
    }
}

// The new form takes precedence, in either order.
static void parse_rsdp(const struct mb2_rsdp *r)
{
    bool new = r->tag.type == MB2_TAG_RSDP_NEW;
    u32 least = new ? RSDP_SIZE_NEW : RSDP_SIZE_OLD;
    if (boot_info.rsdp_copied && !new)
        return;
    memset(boot_info.rsdp_data, 0, sizeof(boot_info.rsdp_data));
    memcpy(boot_info.rsdp_data, r->rsdp, least);
    boot_info.rsdp_copied = true;
}

static bool colour_fits(struct boot_colour c, u32 bits)
{
    return c.bits && c.bits <= COLOUR_BITS_MAX && c.shift + c.bits <= bits;
}

static bool is_usable(const struct boot_framebuffer *f)
{
    bool known =
        f->bits == 15 || f->bits == 16 || f->bits == 24 || f->bits == 32;
    u32 bytes = DIV_ROUND_UP(f->bits, 8u);
    return known && f->base && f->width && f->width <= PIXELS_MAX &&
           f->height && f->height <= PIXELS_MAX &&
           f->pitch >= f->width * bytes && f->pitch <= 2 * 4 * PIXELS_MAX &&
           f->base + (u64)f->pitch * f->height > f->base &&
           colour_fits(f->red, 8 * bytes) && colour_fits(f->green, 8 * bytes) &&
           colour_fits(f->blue, 8 * bytes);
}

static void parse_framebuffer(const struct mb2_framebuffer *t)
{
    struct boot_framebuffer f = {
        .base = t->base,
        .pitch = t->pitch,
        .width = t->width,
        .height = t->height,
        .bits = t->bits,
        .red = { t->red_shift, t->red_bits },
        .green = { t->green_shift, t->green_bits },
        .blue = { t->blue_shift, t->blue_bits },
    };
    if (t->kind == MB2_FRAMEBUFFER_TEXT)
        return;
    if (t->kind == MB2_FRAMEBUFFER_RGB && is_usable(&f))
        boot_info.framebuffer = f;
    else
        boot_problem("no use of a framebuffer of %ux%ux%u, pitch %u, kind %u",
                     f.width, f.height, f.bits, f.pitch, t->kind);
}

// Bytes of a tag of this type that the parser reads at least; 0: unknown.
static u32 least_size(u32 type)
{
    switch (type) {
    case MB2_TAG_CMDLINE:
    case MB2_TAG_LOADER:
        return sizeof(struct mb2_string);
    case MB2_TAG_MODULE:
        return sizeof(struct mb2_module);
    case MB2_TAG_MEMORY:
        return sizeof(struct mb2_memory);
    case MB2_TAG_MMAP:
        return sizeof(struct mb2_mmap);
    case MB2_TAG_FRAMEBUFFER: // a text mode's has no colours
        return offsetof(struct mb2_framebuffer, red_shift);
    case MB2_TAG_RSDP_OLD:
        return sizeof(struct mb2_rsdp) + RSDP_SIZE_OLD;
    case MB2_TAG_RSDP_NEW:
        return sizeof(struct mb2_rsdp) + RSDP_SIZE_NEW;
    }
    return 0;
}

static void parse_tag(const struct mb2_tag *t)
{
    const struct mb2_string *s = (const void *)t;
    const struct mb2_module *m = (const void *)t;
    size_t text = t->size - sizeof(*t); // of a string tag
    struct mb2_framebuffer f = { 0 };
    switch (t->type) {
    case MB2_TAG_CMDLINE:
        if (strnlen(s->text, text) >= BOOT_CMDLINE_MAX)
            boot_problem("the command line is cut off after %u characters",
                         BOOT_CMDLINE_MAX - 1);
        boot_copy_text(boot_info.cmdline, BOOT_CMDLINE_MAX, s->text, text);
        break;
    case MB2_TAG_LOADER:
        boot_copy_text(boot_info.loader, sizeof(boot_info.loader), s->text,
                       text);
        break;
    case MB2_TAG_MODULE:
        boot_add_module(m->start, m->end, m->text, t->size - sizeof(*m));
        break;
    case MB2_TAG_MMAP:
        parse_map((const void *)t);
        break;
    case MB2_TAG_FRAMEBUFFER:
        memcpy(&f, t, MIN(t->size, sizeof(f)));
        parse_framebuffer(&f);
        break;
    case MB2_TAG_RSDP_OLD:
    case MB2_TAG_RSDP_NEW:
        parse_rsdp((const void *)t);
        break;
    }
}

void mb2_parse(const struct mb2_info *info, size_t size)
{
    const char *p = (const char *)(info + 1);
    size_t left = size < sizeof(*info) ? 0 : size - sizeof(*info);
    const struct mb2_memory *memory = NULL;
    const struct mb2_tag *t = NULL;
    while (left >= sizeof(*t)) {
        t = (const void *)p;
        if (t->type == MB2_TAG_END)
            break;
        if (t->size < sizeof(*t) || t->size > left) {
            boot_problem("tag %u has %u bytes where %u are left: the rest is "
                         "skipped",
                         t->type, t->size, (u32)left);
            break;
        }
        if (t->size < least_size(t->type))
            boot_problem("tag %u has only %u bytes: skipped", t->type, t->size);
        else if (t->type == MB2_TAG_MEMORY)
            memory = (const void *)t;
        else
            parse_tag(t);
        size_t step = MIN(ALIGN_UP((size_t)t->size, (size_t)8), left);
        p += step;
        left -= step;
    }
    if (memory)
        boot_add_plain_memory(memory->lower, memory->upper);
}
