// Set-up of the frame allocator from the boot loader's memory map. Runs once,
// on the boot CPU, on the early page tables.

#include "arch/boot.h"
#include "kernel/base/log.h"
#include "kernel/mm/zone.h"
#include "lib/string.h"

// Below: real-mode memory, the BIOS's data.
#define FIRST_PADDR 0x10000u
#define RESERVE_MAX 256u // frames
#define ROOTS_PART 10u   // root's part of each zone: 1/10

struct range {
    u64 start, end; // page-aligned
};

static struct range pages_touched(paddr_t base, u64 size)
{
    return (struct range){ ALIGN_DOWN(base, (u64)PAGE_SIZE),
                           ALIGN_UP(base + size, (u64)PAGE_SIZE) };
}

static struct range kernel_image(void)
{
    paddr_t base = image_paddr((void *)image_start());
    return pages_touched(base, image_paddr(kernel_end) - base);
}

// The memory that the image's addresses hide in the early page tables; the rest
// of the last large page is released by arch_init_memory.
static struct range hidden_memory(void)
{
    u32 start = image_start() - KERNEL_BASE;
    u32 end = ALIGN_UP((u32)kernel_end - KERNEL_BASE, IMAGE_ALIGN);
    return (struct range){ start, image_distance ? end : start };
}

// The `i`th range that is in use at boot: the kernel's image, what it hides,
// the page in which CPUs start, the modules. False when there are no more.
static bool taken_range(u32 i, struct range *out)
{
    if (i >= 3 + boot_info.module_count)
        return false;
    if (i == 0) {
        *out = kernel_image();
    } else if (i == 1) {
        *out = hidden_memory();
    } else if (i == 2) {
        u32 page = boot_info.start_page;
        *out = pages_touched(page, page ? PAGE_SIZE : 0);
    } else {
        const struct boot_module *m = &boot_info.modules[i - 3];
        *out = pages_touched(m->base, m->size);
    }
    return true;
}

// The part of a usable region that lies in [FIRST_PADDR, limit), whole frames.
static bool usable_range(u32 i, u64 limit, struct range *out)
{
    const struct boot_region *r = &boot_info.regions[i];
    u64 start = ALIGN_UP(MAX(r->base, FIRST_PADDR), (u64)PAGE_SIZE);
    u64 end = ALIGN_DOWN(MIN(r->base + r->size, limit), (u64)PAGE_SIZE);
    *out = (struct range){ start, end };
    return r->usable && start < end;
}

// The lowest address in `r` with `size` free bytes, or 0.
static u64 place_in(struct range r, u64 size)
{
    u64 at = r.start;
    struct range taken;
    for (u32 i = 0; taken_range(i, &taken); i++) {
        if (at < taken.end && taken.start < at + size) {
            at = taken.end;
            i = (u32)-1; // moved: check all ranges again
        }
    }
    return at + size <= r.end ? at : 0;
}

static u64 find_place(u64 size)
{
    struct range r;
    for (u32 i = 0; i < boot_info.region_count; i++) {
        u64 at = 0;
        if (usable_range(i, DIRECT_MAP_MAX, &r))
            at = place_in(r, size);
        if (at)
            return at;
    }
    panic("no room for the frame table (%llu KiB)", size / 1024);
}

// RAM above is not used: beyond the reach of the paging mode, or more frames
// than a table of a quarter of the direct map can describe.
static u64 memory_limit(void)
{
    u64 table = DIRECT_MAP_MAX / 4 / sizeof(struct frame);
    return MIN(paddr_limit(), table << PAGE_SHIFT);
}

static u64 memory_end(u64 limit)
{
    u64 end = 0;
    struct range r;
    for (u32 i = 0; i < boot_info.region_count; i++) {
        if (usable_range(i, limit, &r))
            end = MAX(end, r.end);
    }
    return end;
}

static void manage(struct range r)
{
    for (u64 p = r.start; p < r.end; p += PAGE_SIZE) {
        struct frame *f = &frames[(u32)(p >> PAGE_SHIFT)];
        f->flags = FRAME_MANAGED;
        f->zone = p < DIRECT_MAP_MAX ? ZONE_LOW : ZONE_HIGH;
        zones[f->zone].total++;
    }
}

// Takes one reference for each range that covers a frame: a module's last page
// may be the first page of the next one.
static void reserve(struct range r)
{
    for (u64 p = r.start; p < r.end; p += PAGE_SIZE) {
        struct frame *f = frame_from_paddr(p);
        if (!f)
            continue;
        if (f->refs++ == 0) {
            f->use = FRAME_KERNEL;
            frame_caches[0]->by_use[FRAME_KERNEL]++;
        }
    }
}

static void free_unreserved(struct range r)
{
    u32 end = (u32)(r.end >> PAGE_SHIFT);
    for (u32 n = (u32)(r.start >> PAGE_SHIFT); n < end;) {
        u32 order = 0;
        if (frames[n].refs) {
            n++;
            continue;
        }
        while (order < ORDER_MAX && !(n & (1u << order)) &&
               n + (2u << order) <= end) {
            u32 i = 1u << order;
            while (i < 2u << order && !frames[n + i].refs)
                i++;
            if (i < 2u << order)
                break;
            order++;
        }
        buddy_free(&zones[frames[n].zone], &frames[n], order);
        n += 1u << order;
    }
}

static void count_unmanaged(u64 managed)
{
    u64 usable = 0;
    for (u32 i = 0; i < boot_info.region_count; i++) {
        if (boot_info.regions[i].usable)
            usable += boot_info.regions[i].size >> PAGE_SHIFT;
    }
    unmanaged_frames = usable > managed ? usable - managed : 0;
}

void frame_init_cpu(struct cpu *cpu)
{
    cpu->frame_cache = frame_caches[cpu->id];
}

void frame_init(void)
{
    frame_init_cpu(this_cpu());
    for (u32 i = 0; i < ZONES * ORDERS; i++)
        list_init(&zones[i / ORDERS].blocks[i % ORDERS]);

    u64 limit = memory_limit();
    frame_count =
        ALIGN_UP((u32)(memory_end(limit) >> PAGE_SHIFT), 1u << ORDER_MAX);
    u64 size =
        ALIGN_UP((u64)frame_count * sizeof(struct frame), (u64)PAGE_SIZE);
    u64 place = find_place(size);
    frames = phys_to_virt(place);
    memset(frames, 0, (size_t)size);

    struct range r;
    for (u32 i = 0; i < boot_info.region_count; i++) {
        if (usable_range(i, limit, &r))
            manage(r);
    }
    reserve((struct range){ place, place + size });
    for (u32 i = 0; taken_range(i, &r); i++)
        reserve(r);
    for (u32 i = 0; i < boot_info.region_count; i++) {
        if (usable_range(i, limit, &r))
            free_unreserved(r);
    }
    zones[ZONE_LOW].reserve = MIN(zones[ZONE_LOW].total / 64, RESERVE_MAX);
    for (u32 i = 0; i < ZONES; i++)
        zones[i].roots = zones[i].total / ROOTS_PART;
    any_zone = zones[ZONE_HIGH].total ? ZONE_HIGH : ZONE_LOW;
    count_unmanaged(zones[ZONE_LOW].total + zones[ZONE_HIGH].total);
}

void frame_release_region(paddr_t base, u64 size)
{
    struct range r = pages_touched(base, size);
    for (u64 p = r.start; p < r.end; p += PAGE_SIZE) {
        struct frame *f = frame_from_paddr(p);
        if (f)
            frame_unref(f);
    }
}

NORETURN void boot_lacks_memory(const char *for_what)
{
    u32 total = frames_total(), used = total - frames_free();
    panic("no memory for %s: the kernel and the boot modules take %u of %u KiB",
          for_what, used * (PAGE_SIZE / 1024), total * (PAGE_SIZE / 1024));
}
