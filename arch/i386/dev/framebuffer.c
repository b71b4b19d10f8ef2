// A linear framebuffer as the display: where UEFI has left one, or a loader has
// set a graphics mode.
//
// Mapped write-combining: the CPU collects stores into bursts; by MTRRs if it
// has no PAT (cpu/mtrr.h). Before
// arch_init_memory it is mapped on the early page tables, so that a machine
// which lacks memory says so. Of a framebuffer larger than FRAMEBUFFER_MAX the
// upper part is used.
#include "arch/boot.h"
#include "arch/i386/boot/early_map.h"
#include "arch/i386/cpu/mtrr.h"
#include "arch/i386/dev/display.h"
#include "arch/i386/dev/pixels.h"
#include "arch/i386/mm/entry.h"
#include "arch/i386/mm/memory.h"
#include "kernel/base/log.h"

_Static_assert(DISPLAY_CELLS_MAX == PIXELS_CELLS_MAX, "one screen");

#define FRAMEBUFFER_MAX MIB(40) // 3840x2160 by 32 bits is 32 MiB

extern const u8 font[256][GLYPH_HEIGHT]; // font.S

static struct pixels pixels;
static u8 *final;

static u32 mapped_size(void)
{
    return pixels.height * pixels.pitch;
}

static bool framebuffer_probe(u32 *rows, u32 *cols)
{
    const struct boot_framebuffer *f = &boot_info.framebuffer;
    if (!f->width)
        return false;
    u32 height = MIN(f->height, FRAMEBUFFER_MAX / f->pitch);
    if (!pixels_init(&pixels, f, height, font))
        return false;
    pixels.base = early_map(f->base, mapped_size(), ENTRY_COMBINING);
    if (!pixels.base) {
        log_printf("framebuffer: at %#llx it cannot be mapped\n", f->base);
        return false;
    }
    pixels_clear(&pixels);
    *rows = pixels.rows;
    *cols = pixels.cols;
    return true;
}

static void framebuffer_show(struct screen *s, u32 from, u32 to)
{
    pixels_show(&pixels, s, from, to);
}

const struct display framebuffer = {
    .probe = framebuffer_probe,
    .show = framebuffer_show,
    .slow = true,
};

void framebuffer_map(void)
{
    if (pixels.base)
        final = map_video(boot_info.framebuffer.base, mapped_size());
}

void framebuffer_move(void)
{
    pixels.base = final;
    if (final)
        mtrr_combine(boot_info.framebuffer.base, mapped_size());
}
