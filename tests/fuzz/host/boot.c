// arch/i386/boot/boot_parse.c: an input is a byte that selects the Multiboot
// version, then the low memory from address 8 on, which contains the loader's
// structure. Memory ends with the input.
// link: arch/i386/boot/memory_map.c
#include "host.h"

#include <string.h>

#include "arch/i386/boot/memory_map.h"
#include "arch/i386/boot/multiboot.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/mm/memory.h"

#define INFO_AT 8u

static u8 *memory;
static u32 memory_bytes;
#undef DIRECT_MAP_MAX
#define DIRECT_MAP_MAX memory_bytes
#define phys_to_virt(paddr) ((void *)(memory + (paddr)))

#include "arch/i386/boot/boot_parse.c"

void text_init(void)
{
}

void cpu_init_boot(void)
{
}

void memory_init_boot(void)
{
}

NORETURN void kernel_main(void)
{
    abort();
}

static void check_regions(void)
{
    paddr_t end = 0;
    REQUIRE(boot_info.region_count <= BOOT_REGIONS_MAX);
    for (u32 i = 0; i < boot_info.region_count; i++) {
        const struct boot_region *r = &boot_info.regions[i];
        REQUIRE(r->size && r->base >= end && r->base + r->size > r->base);
        REQUIRE(r->base % PAGE_SIZE == 0 && r->size % PAGE_SIZE == 0);
        REQUIRE(!r->usable || r->base >= REAL_MODE_END);
        end = r->base + r->size;
    }
}

static void check_texts(void)
{
    REQUIRE(strlen(boot_info.loader) < sizeof(boot_info.loader));
    REQUIRE(strlen(boot_info.cmdline) < sizeof(boot_info.cmdline));
    REQUIRE(boot_info.module_count <= BOOT_MODULES_MAX);
    for (u32 i = 0; i < boot_info.module_count; i++) {
        const struct boot_module *m = &boot_info.modules[i];
        REQUIRE(strlen(m->name) < sizeof(m->name) && !strchr(m->name, '/') &&
                !strchr(m->name, ' '));
    }
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    struct input in = { data, size };
    u32 magic = take_byte(&in) & 1 ? MB2_BOOT_MAGIC : MB1_BOOT_MAGIC;
    memory_bytes = INFO_AT + (u32)in.left;
    memory = calloc(1, memory_bytes);
    REQUIRE(memory);
    memcpy(memory + INFO_AT, in.at, in.left);
    memset(&boot_info, 0, sizeof(boot_info));
    memset(&memory_map, 0, sizeof(memory_map));
    boot_parse(magic, INFO_AT);
    check_regions();
    check_texts();
    free(memory);
    return 0;
}
