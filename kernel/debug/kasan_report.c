// Reports of the address checker: the access, the memory it hit and where,
// which callers allocated and freed that memory; then a panic, whose backtrace
// leads to the access.
//
// The first CPU to find an error reports; from then on nothing is checked, so
// that a report cannot cause another one. Takes no lock: the text is written to
// the consoles as in a panic.
#ifdef KASAN

#include "arch/cpu.h"
#include "arch/thread.h"
#include "kernel/base/log.h"
#include "kernel/debug/kasan_private.h"
#include "kernel/mm/frame.h"

#define FRAME_MAGIC 0x41b58ab3u // the compilers' mark of a checked stack frame
#define SHADOW_SHOWN 8u         // bytes on each side

// The note at the low end of a checked stack frame.
struct stack_note {
    u32 magic;
    const char *variables; // "COUNT OFFSET SIZE LENGTH NAME[:LINE] ..."
    u32 function;
};

static void print_pc(u32 pc)
{
    u32 offset = 0;
    const char *name = ksym_lookup(pc, &offset);
    console_printf("  %08x %s+%#x\n", pc, name ? name : "?", offset);
}

static void print_stack(const char *what, const struct kasan_stack *s)
{
    if (!s->pcs[0])
        return;
    console_printf("kasan: %s by thread %u:\n", what, s->thread);
    for (u32 i = 0; i < KASAN_PCS && s->pcs[i]; i++)
        print_pc(s->pcs[i]);
}

// Prints where `addr` is relative to something at `base` with `size` bytes.
static void print_place(u32 addr, u32 base, u32 size)
{
    if (addr < base)
        console_printf("%u bytes before ", base - addr);
    else if (addr < base + size)
        console_printf("byte %u of ", addr - base);
    else
        console_printf("%u bytes after ", addr - base - size);
}

static void print_object(u32 addr, const struct slab_cache *c)
{
    u32 slab = addr & ~((PAGE_SIZE << c->order) - 1);
    u32 object = addr - (addr - slab) % c->object_size;
    if (object - slab >= c->objects_per_slab * c->object_size) {
        console_printf("kasan: after the last object of a slab of %s\n",
                       c->name);
        return;
    }
    const struct kasan_object *o = kasan_object(c, (void *)object);
    console_printf("kasan: ");
    print_place(addr, object, o->size);
    console_printf("an object of %u bytes at %08x, of cache %s\n", o->size,
                   object, c->name);
    print_stack("allocated", &o->taken);
    print_stack("freed", &o->freed);
}

static bool print_global(u32 addr)
{
    for (u32 i = 0; i < kasan_globals_count; i++) {
        const struct kasan_globals *file = &kasan_globals[i];
        for (u32 j = 0; j < file->count; j++) {
            const struct kasan_global *g = &file->list[j];
            if (addr - g->addr >= g->padded_size)
                continue;
            console_printf("kasan: ");
            print_place(addr, g->addr, g->size);
            console_printf("%s (%u bytes at %08x), %s\n", g->name, g->size,
                           g->addr, g->file);
            return true;
        }
    }
    return false;
}

// A frame's variables lie between redzones; its note is in the lowest redzone.
static void print_frame(u32 addr)
{
    u32 at = ALIGN_DOWN(addr, GRANULE);
    for (u32 left = KSTACK_SIZE; left; left -= GRANULE, at -= GRANULE) {
        const struct stack_note *note = (const void *)at;
        if (*shadow_of(at) != KASAN_STACK_LEFT || note->magic != FRAME_MAGIC)
            continue;
        u32 offset;
        const char *name = ksym_lookup(note->function, &offset);
        console_printf(
            "kasan: byte %u of the frame of %s, whose variables are\n"
            "  (how many, then offset, size, length of name, name): %s\n",
            addr - at, name ? name : "?", note->variables);
        return;
    }
}

static void print_owner(u32 addr, u8 why)
{
    if (addr - KERNEL_BASE < DIRECT_MAP_MAX && !is_in_image(addr)) {
        const struct frame *f = frame_from_va((void *)addr);
        if (f && f->use == FRAME_SLAB && f->owner)
            print_object(addr, f->owner);
        else if (f && why == KASAN_FRAME_FREED)
            console_printf("kasan: in the frame at %#llx, refs %u, use %u\n",
                           frame_paddr(f), f->refs, f->use);
    }
    switch (why) {
    case KASAN_GLOBAL:
        print_global(addr);
        break;
    case KASAN_STACK_LEFT:
    case KASAN_STACK_MIDDLE:
    case KASAN_STACK_RIGHT:
    case KASAN_STACK_SCOPE:
        print_frame(addr);
        break;
    }
}

static void print_shadow(u32 addr)
{
    const u8 *at = shadow_of(addr);
    console_printf("kasan: shadow, a byte for 8, from %08x:",
                   ALIGN_DOWN(addr, GRANULE) - SHADOW_SHOWN * GRANULE);
    for (const u8 *p = at - SHADOW_SHOWN; p <= at + SHADOW_SHOWN; p++)
        console_printf(p == at ? " [%02x]" : " %02x", *p);
    console_printf("\n");
}

static const char *kind_of(u8 why)
{
    switch (why) {
    case KASAN_STACK_LEFT:
    case KASAN_STACK_MIDDLE:
    case KASAN_STACK_RIGHT:
    case KASAN_ALLOCA_LEFT:
    case KASAN_ALLOCA_RIGHT:
        return "stack-overflow";
    case KASAN_STACK_SCOPE:
        return "use-after-scope";
    case KASAN_GLOBAL:
        return "global-overflow";
    case KASAN_HEAP_REDZONE:
        return "heap-overflow";
    case KASAN_HEAP_FREED:
        return "use-after-free";
    case KASAN_STACK_FREED:
        return "use-after-free of a kernel stack";
    case KASAN_FRAME_FREED:
        return "use-after-free of a frame";
    }
    return "bad access";
}

// One CPU reports; a second one waits for the machine's end.
static void begin(void)
{
    static bool reporting;
    irq_disable();
    if (__atomic_exchange_n(&reporting, true, __ATOMIC_SEQ_CST))
        cpu_halt_forever();
    kasan_stop();
    smp_stop_others();
    console_printf("\n");
}

// The first byte that may not be accessed.
static u32 first_bad(u32 addr, u32 size)
{
    for (u32 i = 0; i < size; i++) {
        u8 s = *shadow_of(addr + i);
        if (s && (s >= GRANULE || (addr + i) % GRANULE >= s))
            return addr + i;
    }
    return addr;
}

void kasan_report_access(u32 addr, u32 size, bool write, u32 pc)
{
    begin();
    u32 bad = first_bad(addr, size);
    u8 why = *shadow_of(bad);
    if (why < GRANULE) // a partial granule: the next byte says why
        why = *shadow_of(bad + GRANULE);
    print_owner(bad, why);
    print_shadow(bad);
    u32 offset = 0;
    const char *name = ksym_lookup(pc, &offset);
    panic("kasan: %s: %s of %u bytes at %08x in %s+%#x", kind_of(why),
          write ? "write" : "read", size, addr, name ? name : "?", offset);
}

void kasan_report_free(const struct slab_cache *c, const void *object,
                       const char *kind)
{
    begin();
    print_owner((u32)object, 0);
    panic("kasan: %s: %08x to cache %s", kind, (u32)object, c->name);
}

#endif
