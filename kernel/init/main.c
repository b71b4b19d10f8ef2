// Start-up, in order.

#include "arch/boot.h"
#include "arch/clock.h"
#include "arch/cpu.h"
#include "kernel/ahci/ahci.h"
#include "kernel/base/cmdline.h"
#include "kernel/base/log.h"
#include "kernel/base/version.h"
#include "kernel/debug/canary.h"
#include "kernel/debug/fail_alloc.h"
#include "kernel/debug/fault.h"
#include "kernel/debug/kcsan.h"
#include "kernel/debug/uninit.h"
#include "kernel/exec/vdso.h"
#include "kernel/fs/file.h"
#include "kernel/fs/tty.h"
#include "kernel/init/testers.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/monitor/sysinfo.h"
#include "kernel/net/net.h"
#include "kernel/profile/sample.h"
#include "kernel/sched/hang.h"
#include "kernel/sched/load.h"
#include "kernel/sensor/kernel_sensor.h"
#include "kernel/syscall/dispatch.h"
#include "kernel/task/task.h"
#include "kernel/time/callout.h"
#include "kernel/time/eventwatch.h"
#include "kernel/time/timecounter.h"
#include "kernel/time/wallclock.h"
#include "kernel/usb/usb.h"
#include "lib/format.h"

KERNEL_ARG(init, "init=PATH: the first program, instead of /sbin/init");
KERNEL_ARG(login,
           "login: the consoles prompt for a login, instead of a root shell");
KERNEL_ARG(start_delay, "start_delay=N: starts N instructions later, which "
                        "moves all that follows against the clocks");

#define MEMORY_MINIMUM (16 * 256u) // frames: 16 MiB

static void delay_start(void)
{
    u32 instructions = 0;
    if (kernel_arg_number(&arg_start_delay, &instructions))
        cpu_run_instructions(instructions);
}

static void show_memory(void)
{
    struct frame_stats s;
    frame_stats(&s);
    log_printf("memory: %u MiB, %u MiB free\n", (u32)(s.total >> 8),
               (u32)(s.free >> 8));
    if (s.total < MEMORY_MINIMUM)
        log_printf("warning: less than 16 MiB of memory\n");
}

static void start_scheduling(void)
{
    ledger_init_cpu(this_cpu());
    syscall_init_cpu(this_cpu());
    callouts_init_cpu(this_cpu());
    sched_init();
}

static void callout_thread(void *cpu)
{
    struct cpu_set only = cpu_set_of(((struct cpu *)cpu)->id);
    thread_set_affinity(current, &only);
    callouts_serve(cpu);
}

static void start_callout_threads(void)
{
    for (u32 i = 0; i < cpu_count; i++) {
        char name[16];
        format(name, sizeof(name), "callout/%u", i);
        if (kthread_create(name, callout_thread, cpus[i], NULL))
            boot_lacks_memory("the callouts' threads");
    }
}

// Threads may be placed on a CPU once it has a run queue.
static void wait_for_schedulers(void)
{
    for (u32 i = 0; i < cpu_count; i++) {
        while (!READ_ONCE(cpus[i]->rq))
            cpu_relax();
    }
}

static void open_console(void)
{
    for (int i = 0; i < 3; i++) {
        struct file *f;
        int err = vfs_open(NULL, "/dev/console", O_RDWR, 0, &f);
        if (!err)
            err = fd_install(f, false, 0);
        if (err < 0)
            log_printf("init: cannot open /dev/console: error %d\n", -err);
    }
}

static void init_thread(void *path)
{
    struct trapframe *tf = thread_trapframe(current);
    trap_measure_outside();
    open_console();
    int err = task_exec(tf, path, 0, 0);
    if (err == -ENOMEM)
        panic("no memory to start %s", (const char *)path);
    if (err)
        panic("cannot start %s: error %d; is the initrd loaded?",
              (const char *)path, -err);
    arch_enter_user(tf);
}

static void run_first_program(void *arg)
{
    (void)arg;
    sources_test();
    event_watch_start();
    vdso_init();
    vfs_init();
    tty_init();
    usb_start();
    ahci_start();
    net_start();
    uninit_start();
    testers_run();
    const char *path = arg_init.value[0] ? arg_init.value : "/sbin/init";
    if (task_start_init(init_thread, (void *)path))
        boot_lacks_memory("the first task");
}

static void show_boot_problems(void)
{
    for (u32 i = 0; i < MIN(boot_info.problem_count, BOOT_PROBLEMS_MAX); i++)
        log_printf("warning: boot loader: %s\n", boot_info.problems[i]);
    if (boot_info.problem_count > BOOT_PROBLEMS_MAX)
        log_printf("warning: boot loader: %u more problems\n",
                   boot_info.problem_count - BOOT_PROBLEMS_MAX);
}

void kernel_main(void)
{
    arch_init_early();
    // Twice: the console on the command line is known only once that is parsed,
    // and a warning about the command line needs a console.
    console_init();
    cmdline_parse(boot_info.cmdline);
    console_init();
    log_printf("%s version %s %s, booted by %s\n", KERNEL_NAME, kernel_release,
               kernel_version, boot_info.loader);
    show_boot_problems();
    delay_start();
    canary_init();
    fail_alloc_start();
    fault_start();
    frame_init();
    arch_init_memory();
    show_memory();
    task_table_init();
    arch_init_devices();
    heap_expect_cpus(smp_cpus_expected());
    wallclock_init();
    start_scheduling();
    irq_enable();
    kernel_sensors_start(); // before anything that they could measure
    timecounters_start();
    smp_start();
    wait_for_schedulers();
    kcsan_enable();
    log_printf("%u CPU%s, %s, TSC %u kHz\n", cpu_count,
               cpu_count > 1 ? "s" : "", cpu_features.brand,
               (u32)(clock_tsc_hz() / 1000));
    start_callout_threads();
    load_start();
    sysinfo_start();
    hang_watch_start();
    if (kthread_create("start-up", run_first_program, NULL, NULL))
        boot_lacks_memory("the first thread");
    sched_start_cpu();
}

void cpu_main(void)
{
    start_scheduling();
    irq_enable();
    sched_start_cpu();
}
