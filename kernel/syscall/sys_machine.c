// System calls on the machine as a whole: its names, memory, log, randomness
// and shutdown.
//
// names_lock guards the host name; user memory is accessed without it.

#include "arch/clock.h"
#include "arch/cpu.h"
#include "kernel/base/log.h"
#include "kernel/base/version.h"
#include "kernel/fs/devfs.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/load.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/signal.h"
#include "kernel/task/task.h"
#include "lib/string.h"

// --- names ------------------------------------------------------------------

struct utsname_k { // struct new_utsname
    char sysname[KERNEL_NAME_SIZE], nodename[KERNEL_NAME_SIZE],
        release[KERNEL_NAME_SIZE], version[KERNEL_NAME_SIZE],
        machine[KERNEL_NAME_SIZE], domainname[KERNEL_NAME_SIZE];
};

static struct spinlock names_lock = SPINLOCK_INIT("host name");
static char host_name[KERNEL_NAME_SIZE] = "strobe";

s32 sys_uname(u32 buffer)
{
    struct utsname_k names = {
        .sysname = KERNEL_NAME,
        .machine = KERNEL_MACHINE,
        .domainname = "(none)",
    };
    memcpy(names.release, kernel_release, sizeof(kernel_release));
    memcpy(names.version, kernel_version, sizeof(kernel_version));
    spin_lock(&names_lock);
    memcpy(names.nodename, host_name, sizeof(host_name));
    spin_unlock(&names_lock);
    return copy_to_user(buffer, &names, sizeof(names));
}

s32 sys_sethostname(u32 new_name, u32 size)
{
    char name[KERNEL_NAME_SIZE] = "";
    int err;
    if (!is_root())
        return -EPERM;
    if (size > KERNEL_NAME_SIZE - 1)
        return -EINVAL;
    err = copy_from_user(name, new_name, size);
    if (err)
        return err;
    spin_lock(&names_lock);
    memcpy(host_name, name, sizeof(name));
    spin_unlock(&names_lock);
    return 0;
}

// --- sysinfo ----------------------------------------------------------------

struct sysinfo_k { // struct sysinfo of Linux/i386
    s32 uptime;
    u32 loads[3]; // 16.16 fixed point
    u32 totalram, freeram, sharedram, bufferram, totalswap, freeswap;
    u16 procs, pad;
    u32 totalhigh, freehigh, mem_unit;
    char unused[8];
};
_Static_assert(sizeof(struct sysinfo_k) == 64, "struct sysinfo of the ABI");

// BusyBox's uptime truncates to hundredths, while all others round. The least
// value with these hundredths gives the same result in both.
static u32 load_for_truncation(u32 average)
{
    return (((u64)load_hundredths(average) << 16) + 99) / 100;
}

s32 sys_sysinfo(u32 buffer)
{
    struct sysinfo_k info = { .mem_unit = 1 };
    struct frame_stats frames;
    struct load load;
    u32 scale = PAGE_SIZE;
    frame_stats(&frames);
    if (frames.total > UINT32_MAX / PAGE_SIZE) { // does not fit in bytes
        info.mem_unit = PAGE_SIZE;
        scale = 1;
    }
    info.uptime = clock_now_ns() / NSEC_PER_SEC;
    load_read(&load);
    for (unsigned i = 0; i < LOAD_AVERAGES; i++)
        info.loads[i] = load_for_truncation(load.average[i]);
    info.totalram = frames.total * scale;
    info.freeram = frames.free * scale;
    info.sharedram = frames.by_use[FRAME_FILE] * scale; // tmpfs, as on Linux
    info.totalhigh = frames.zone_total[1] * scale;
    info.freehigh = frames.zone_free[1] * scale;
    info.procs = MIN(thread_count(), (u32)UINT16_MAX);
    return copy_to_user(buffer, &info, sizeof(info));
}

// --- the log ----------------------------------------------------------------

#define LOG_TEXT_MAX KIB(64)

enum { // syslog(2)
    SYSLOG_CLOSE = 0,
    SYSLOG_OPEN = 1,
    SYSLOG_READ_ALL = 3,
    SYSLOG_READ_CLEAR = 4,
    SYSLOG_CLEAR = 5,
    SYSLOG_CONSOLE_OFF = 6,
    SYSLOG_CONSOLE_ON = 7,
    SYSLOG_CONSOLE_LEVEL = 8,
    SYSLOG_SIZE_BUFFER = 10,
};

static s32 copy_log(u32 to, u32 size)
{
    size_t length;
    char *text;
    int err;
    if (to == 0 || (s32)size < 0)
        return -EINVAL;
    if (size == 0)
        return 0;
    // Page by page: when users have filled the memory, no large blocks are
    // free.
    size = MIN(size, LOG_TEXT_MAX);
    u32 pages = DIV_ROUND_UP(size, PAGE_SIZE);
    text = vmap_alloc(pages, PROT_R | PROT_W, FRAME_BUFFER);
    if (!text)
        return -ENOMEM;
    length = log_read(text, size);
    err = copy_to_user(to, text, length);
    vmap_free(text, pages);
    return err ? err : (s32)length;
}

// The log is a record of what happened and is never cleared: the calls that
// request it succeed, and the next reader still gets everything. Only root may
// read it: it contains kernel addresses.
s32 sys_syslog(u32 action, u32 buffer, u32 size)
{
    if (!is_root() && action != SYSLOG_SIZE_BUFFER)
        return -EPERM;
    switch (action) {
    case SYSLOG_READ_ALL:
    case SYSLOG_READ_CLEAR:
        return copy_log(buffer, size);
    case SYSLOG_SIZE_BUFFER:
        return LOG_TEXT_MAX;
    case SYSLOG_OPEN:
    case SYSLOG_CLOSE:
    case SYSLOG_CLEAR:
    case SYSLOG_CONSOLE_OFF:
    case SYSLOG_CONSOLE_ON:
    case SYSLOG_CONSOLE_LEVEL:
        return 0;
    default:
        return -EINVAL;
    }
}

// --- randomness -------------------------------------------------------------

#define GRND_ALL 7u // NONBLOCK, RANDOM, INSECURE: all the same here
#define GETRANDOM_MAX 0x1ffffffu // bytes a call, as on Linux
#define RANDOM_CHUNK 256u

s32 sys_getrandom(u32 buffer, u32 size, u32 flags)
{
    u8 chunk[RANDOM_CHUNK];
    u32 wanted = MIN(size, GETRANDOM_MAX), done = 0;
    if (flags & ~GRND_ALL)
        return -EINVAL;
    while (done < wanted) {
        u32 n = MIN(wanted - done, RANDOM_CHUNK);
        if (done > 0 && signal_waiting())
            break;
        random_bytes(chunk, n);
        if (copy_to_user(buffer + done, chunk, n) < 0)
            return -EFAULT;
        done += n;
    }
    memset(chunk, 0, sizeof(chunk));
    barrier();
    return done;
}

// --- shutdown ---------------------------------------------------------------

#define REBOOT_MAGIC1 0xfee1deadu
#define REBOOT_MAGIC2_FIRST 672274793u
#define REBOOT_MAGIC2_SECOND 85072278u
#define REBOOT_MAGIC2_THIRD 369367448u
#define REBOOT_MAGIC2_FOURTH 537993216u

#define REBOOT_RESTART 0x01234567u
#define REBOOT_RESTART2 0xa1b2c3d4u
#define REBOOT_HALT 0xcdef0123u
#define REBOOT_CAD_ON 0x89abcdefu
#define REBOOT_CAD_OFF 0x00000000u
#define REBOOT_OFF 0x4321fedcu

static bool is_magic(u32 first, u32 second)
{
    return first == REBOOT_MAGIC1 &&
           (second == REBOOT_MAGIC2_FIRST || second == REBOOT_MAGIC2_SECOND ||
            second == REBOOT_MAGIC2_THIRD || second == REBOOT_MAGIC2_FOURTH);
}

static NORETURN void halt(void)
{
    log_printf("The machine is halted.\n");
    irq_disable();
    smp_stop_others();
    cpu_halt_forever();
}

s32 sys_reboot(u32 magic, u32 magic2, u32 command, u32 argument UNUSED)
{
    if (!is_root())
        return -EPERM;
    if (!is_magic(magic, magic2))
        return -EINVAL;
    switch (command) {
    case REBOOT_OFF:
        machine_power_off(false);
    case REBOOT_RESTART:
    case REBOOT_RESTART2:
        machine_reset();
    case REBOOT_HALT:
        halt();
    case REBOOT_CAD_ON: // Ctrl-Alt-Del has no effect: nothing to switch
    case REBOOT_CAD_OFF:
        return 0;
    default:
        return -EINVAL;
    }
}
