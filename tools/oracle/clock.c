// Compares the count with the kernel's clock (oracle.h).
#include "oracle.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct clock_check clock_check;

// QEMU has created the file when the guest runs.
static void map_memory(void)
{
    int fd = open(options.memory, O_RDONLY);
    struct stat info;
    if (fd < 0 || fstat(fd, &info))
        fail("cannot open the machine's memory");
    clock_check.size = (u64)info.st_size;
    clock_check.memory =
        mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (clock_check.memory == MAP_FAILED)
        fail("cannot map the machine's memory");
    close(fd);
}

void stored_time(unsigned cpu, u32 info, u64 address, void *data)
{
    (void)data;
    struct qemu_plugin_hwaddr *hw = qemu_plugin_get_hwaddr(info, address);
    u64 phys = hw ? qemu_plugin_hwaddr_phys_addr(hw) : ~0ull;
    if (!clock_check.memory)
        map_memory();
    if (phys + 4 > clock_check.size)
        return;
    u32 low;
    memcpy(&low, clock_check.memory + phys, 4);
    clock_check.read = cpus[cpu].rdtsc_at;
    clock_check.low = low;
    clock_check.now = cpus[cpu].rdtsc_at;
}

// The CPU returns to user mode after the reading. (Some others are the kernel's
// measurement of what the return takes.)
void check_clock(void)
{
    if (!clock_check.read)
        return;
    clock_check.read = false;
    u32 low = clock_check.low;
    u64 at = clock_check.now;
    if (clock_check.known) {
        s64 passed = (u32)(low - (u32)clock_check.value);
        s64 counted = (s64)(at - clock_check.at);
        s64 over = passed - (s64)(u32)counted;
        clock_check.readings++;
        if (over && !clock_check.halted) {
            clock_check.wrong += over;
            clock_check.wrongs++;
        } else if (!clock_check.halted) {
            clock_check.equal++;
        } else {
            clock_check.halts++;
            clock_check.idle += (u64)(over > 0 ? over : 0);
            clock_check.halter->halted_ns += (u64)(over > 0 ? over : 0);
        }
    }
    clock_check.known = true;
    clock_check.halted = false;
    clock_check.value = low;
    clock_check.at = at;
}
