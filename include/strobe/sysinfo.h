// The sysinfo tree: everything that the kernel reports about itself.
//
// A path names a node: components separated by dots, "" is the root. A node has
// children, or holds data, or both (system.tasks holds the list of tasks;
// system.tasks.42 is one of them). Data is generated when it is read.
//
// A node holds, by its kind, one u64 (value); an array of records of one type
// (data); or bytes (text). Every record type is described once, below: the C
// structure, and the names, types and units that the printers use
// (lib/records.h), are generated from the same table. Layouts are the same for
// 32 and 64-bit programs.
//
//     syscall(SYS_sysinfo_get_data, path, strlen(path), buf, size)
//         bytes the node holds, of which min(size, that) were stored;
//         0 for one that holds nothing but children. ENOENT, EFAULT, ENOMEM.
//     syscall(SYS_sysinfo_get_keys, path, strlen(path), buf, size)
//         the same with the names of the children, each ended by a NUL.
//     syscall(SYS_sysinfo_get_type, path, strlen(path))
//         kind and what it holds: see SYSINFO_KIND.
//
// user/libstrobe/sysinfo.h has typed functions for all of it.
//
// A list (system.tasks, system.threads) has exactly the members that existed at
// one instant of the call, each once. Each record is then filled separately: a
// task that has ended since is shown as it ended.
#pragma once

#include <stdint.h>

#define SYS_sysinfo_get_data 1000
#define SYS_sysinfo_get_keys 1001
#define SYS_sysinfo_get_type 1002

#define SYSINFO_PATH_MAX 128 // bytes of a path

// The result of get_type: the kind, and the record type (data) or unit (value).
enum sysinfo_kind {
    SYSINFO_SUBTREE = 1,
    SYSINFO_VALUE,
    SYSINFO_DATA,
    SYSINFO_TEXT,
};
#define SYSINFO_TYPE(kind, what) ((uint32_t)(kind) | (uint32_t)(what) << 8)
#define SYSINFO_KIND(type) ((type)&0xff)
#define SYSINFO_WHAT(type) ((type) >> 8)

enum sysinfo_unit {
    SYSINFO_COUNT,   // a plain number
    SYSINFO_ID,      // a number that identifies; SYSINFO_ALL: none, or all
    SYSINFO_BYTES,   //
    SYSINFO_CYCLES,  // TSC cycles: system.cpus has the frequency
    SYSINFO_NS,      // nanoseconds
    SYSINFO_SECONDS, //
    SYSINFO_HZ,      //
    SYSINFO_FIXED16, // 16.16 fixed point
    SYSINFO_FLAG,    // 1 or 0
    SYSINFO_STATE,   // enum sysinfo_state
    SYSINFO_NAME,    // of texts
    SYSINFO_TICKS,   // of a counter other than the TSC
    SYSINFO_ADDRESS, // of the kernel's code
    SYSINFO_UNITS
};

#define SYSINFO_ALL UINT32_MAX // in place of a CPU's or a system call's number

// States of threads. A task has the most active state of its threads, or is a
// zombie: it has ended and its parent has not yet waited for it.
#define SYSINFO_STATES(S)                                   \
    S(RUNNING, running)                                     \
    S(READY, ready)                                         \
    S(SLEEPING, sleeping) /* not to be woken by a signal */ \
    S(WAITING, waiting)   /* for an event or a signal */    \
    S(STOPPED, stopped)                                     \
    S(DEAD, dead) /* ended, not yet gone */                 \
    S(ZOMBIE, zombie)

enum sysinfo_state {
#define SYSINFO_STATE_ENUM(upper, lower) SYSINFO_##upper,
    SYSINFO_STATES(SYSINFO_STATE_ENUM)
#undef SYSINFO_STATE_ENUM
};

// ---- record types: F(r, type, name, unit, meaning)

// system.uptime
#define SYSINFO_UPTIME_FIELDS(F, r)                              \
    F(r, U64, seconds, SECONDS, "whole seconds since the start") \
    F(r, U32, nanoseconds, NS, "and the rest of them")

// system.cpus[.n]. user + kernel + irq + idle + start_up == elapsed.
#define SYSINFO_CPU_FIELDS(F, r)                                     \
    F(r, U32, id, ID, "number of the CPU")                           \
    F(r, U32, active, FLAG, "it takes part")                         \
    F(r, U64, frequency, HZ, "of its TSC")                           \
    F(r, U64, elapsed, CYCLES, "since its ledger began")             \
    F(r, U64, busy, CYCLES, "elapsed without idle")                  \
    F(r, U64, idle, CYCLES, "halted, nothing to do")                 \
    F(r, U64, user, CYCLES, "in programs")                           \
    F(r, U64, kernel, CYCLES, "in the kernel for threads")           \
    F(r, U64, irq, CYCLES, "in interrupt handlers")                  \
    F(r, U64, start_up, CYCLES, "before its first thread")           \
    F(r, U64, switches, COUNT, "from one thread to another")         \
    F(r, U32, apic_id, ID, "of its local APIC")                      \
    F(r, U32, package, ID, "the processor that it is in")            \
    F(r, U32, core, ID, "in the package")                            \
    F(r, U32, thread, ID, "in the core, if it has several")          \
    F(r, U32, l1d, BYTES, "its data cache of level 1; 0: not known") \
    F(r, U32, l1i, BYTES, "its code cache of level 1; 0: not known") \
    F(r, U32, l2, BYTES, "its cache of level 2; 0: not known")       \
    F(r, U32, l3, BYTES, "its cache of level 3; 0: not known")       \
    F(r, TEXT12, kind, NAME, "of core, in a hybrid processor")

// system.physmem
#define SYSINFO_PHYSMEM_FIELDS(F, r)                                   \
    F(r, U64, total, BYTES, "memory the kernel manages: used + free")  \
    F(r, U64, unavailable, BYTES, "memory that it cannot use")         \
    F(r, U64, used, BYTES, "in use")                                   \
    F(r, U64, free, BYTES, "free")                                     \
    F(r, U64, low_total, BYTES, "low zone: all of it")                 \
    F(r, U64, low_free, BYTES, "low zone: free")                       \
    F(r, U64, high_total, BYTES, "high zone: all of it")               \
    F(r, U64, high_free, BYTES, "high zone: free")                     \
    F(r, U64, kernel, BYTES, "the kernel's image and start-up tables") \
    F(r, U64, slab, BYTES, "kernel heap")                              \
    F(r, U64, pagetable, BYTES, "page tables")                         \
    F(r, U64, kstack, BYTES, "kernel stacks")                          \
    F(r, U64, user, BYTES, "memory of tasks")                          \
    F(r, U64, file, BYTES, "file data")                                \
    F(r, U64, buffer, BYTES, "pipes, rings and other buffers")

// system.load
#define SYSINFO_LOAD_FIELDS(F, r)                            \
    F(r, U32, one, FIXED16, "average over a minute")         \
    F(r, U32, five, FIXED16, "average over five minutes")    \
    F(r, U32, fifteen, FIXED16, "average over 15 minutes")   \
    F(r, U32, runnable, COUNT, "threads at the last update") \
    F(r, U32, updates, COUNT, "one every 5 s since the start")

// system.totals
#define SYSINFO_TOTALS_FIELDS(F, r)                                   \
    F(r, U32, tasks, COUNT, "there are, without the kernel's own")    \
    F(r, U32, threads, COUNT, "there are, the kernel's own included") \
    F(r, U32, runnable, COUNT, "threads that run or could")           \
    F(r, U32, newest, ID, "id given last to a task")                  \
    F(r, U64, tasks_created, COUNT, "since the start")                \
    F(r, U64, switches, COUNT, "context switches on all CPUs")

// system.tasks[.id]. Task 0 is the kernel.
#define SYSINFO_TASK_FIELDS(F, r)                                       \
    F(r, U32, id, ID, "number of the task")                             \
    F(r, U32, parent, ID, "the task that waits for it")                 \
    F(r, U32, group, ID, "process group")                               \
    F(r, U32, session, ID, "session")                                   \
    F(r, U32, uid, ID, "its user")                                      \
    F(r, U32, state, STATE, "what its threads do")                      \
    F(r, U32, threads, COUNT, "it has")                                 \
    F(r, S32, nice, COUNT, "-20 to 19, the nicest")                     \
    F(r, U32, load_bias, BYTES, "program above its file's addresses")   \
    F(r, U64, virtual, BYTES, "mapped")                                 \
    F(r, U64, resident, BYTES, "in memory")                             \
    F(r, U64, user, CYCLES, "in the program, ended threads included")   \
    F(r, U64, kernel, CYCLES, "in the kernel, ended threads included")  \
    F(r, U64, child_user, CYCLES, "of children waited for, and theirs") \
    F(r, U64, child_kernel, CYCLES, "likewise, in the kernel")          \
    F(r, U64, faults, COUNT, "page faults, as the times")               \
    F(r, U64, started, NS, "after the machine")                         \
    F(r, U64, call_sent, COUNT, "IPC calls sent")                       \
    F(r, U64, call_received, COUNT, "IPC calls received")               \
    F(r, U64, answer_sent, COUNT, "IPC answers sent")                   \
    F(r, U64, answer_received, COUNT, "IPC answers received")           \
    F(r, U64, irq_notif_received, COUNT, "interrupt notifications")     \
    F(r, U64, forwarded, COUNT, "IPC calls forwarded")                  \
    F(r, TEXT16, name, NAME, "of the program")                          \
    F(r, TEXT64, path, NAME, "of the program's file (its end)")

// system.threads[.id], system.tasks.N.threads
#define SYSINFO_THREAD_FIELDS(F, r)                                        \
    F(r, U32, id, ID, "number of the thread")                              \
    F(r, U32, task, ID, "its task")                                        \
    F(r, U32, state, STATE, "what it does")                                \
    F(r, U32, cpu, ID, "where it runs or ran last")                        \
    F(r, U32, priority, COUNT, "level in the run queue, 0 to 31; 0 first") \
    F(r, U64, user, CYCLES, "in the program")                              \
    F(r, U64, kernel, CYCLES, "in the kernel")                             \
    F(r, U64, voluntary, COUNT, "switches because it waited")              \
    F(r, U64, forced, COUNT, "switches because others were due")           \
    F(r, U64, ready, NS, "waited in run queues")                           \
    F(r, U64, started, NS, "after the machine")                            \
    F(r, TEXT16, name, NAME, "of the thread")                              \
    F(r, TEXT32, wait_on, NAME, "what it waits for, if it does")           \
    F(r, TEXT64, affinity, NAME, "the CPUs it may use, as 0-1,3")

// system.exceptions: each vector that is in use or was taken, over all CPUs.
// system.exceptions.n: one vector, a record for each CPU.
#define SYSINFO_EXCEPTION_FIELDS(F, r)                                     \
    F(r, U32, vector, ID, "0 to 31: exceptions; above: interrupts")        \
    F(r, U32, cpu, ID, "taken there; all: the sum")                        \
    F(r, U32, hot, FLAG, "it is expected: somebody handles it")            \
    F(r, U64, count, COUNT, "taken")                                       \
    F(r, U64, cycles, CYCLES, "in handlers (of exceptions: the thread's)") \
    F(r, TEXT12, controller, NAME, "where it comes from")                  \
    F(r, TEXT32, description, NAME, "what it is")

// system.ipccs: connections, one for each phone.
#define SYSINFO_IPCC_FIELDS(F, r)                \
    F(r, U32, caller, ID, "task with the phone") \
    F(r, U32, callee, ID, "task that is called")

// system.syscalls, system.tasks.N.syscalls
#define SYSINFO_SYSCALL_FIELDS(F, r)                               \
    F(r, U32, number, ID, "in eax; all: those that are not known") \
    F(r, U64, count, COUNT, "calls")                               \
    F(r, U64, errors, COUNT, "calls that gave an error")           \
    F(r, U64, cycles, CYCLES, "in the kernel for them")            \
    F(r, TEXT24, name, NAME, "of the call")

// system.clock
#define SYSINFO_CLOCK_FIELDS(F, r)                             \
    F(r, TEXT16, name, NAME, "of the device")                  \
    F(r, TEXT12, use, NAME, "time source, timer")              \
    F(r, U32, rank, COUNT, "the highest usable one is chosen") \
    F(r, U32, usable, FLAG, "it works here")                   \
    F(r, U32, chosen, FLAG, "it is used")                      \
    F(r, U64, frequency, HZ, "of its counter")                 \
    F(r, TEXT64, why, NAME, "not chosen, or how it was measured")

// system.clock.readings: the counters that run, each read at nearly one instant
#define SYSINFO_READING_FIELDS(F, r)                        \
    F(r, TEXT16, name, NAME, "of the time source")          \
    F(r, U64, value, TICKS, "what it read")                 \
    F(r, U64, mask, TICKS, "its bits; it wraps after this") \
    F(r, U64, frequency, HZ, "at which it should count")    \
    F(r, U64, before, CYCLES, "the TSC before it was read") \
    F(r, U64, after, CYCLES, "the TSC after that")

// system.profile.sources
#define SYSINFO_SAMPLER_FIELDS(F, r)                           \
    F(r, TEXT16, name, NAME, "for profile -s")                 \
    F(r, U32, rank, COUNT, "the highest usable one is chosen") \
    F(r, U32, usable, FLAG, "it works here")                   \
    F(r, U32, min_rate, HZ, "slowest")                         \
    F(r, U32, max_rate, HZ, "fastest")                         \
    F(r, U32, nmi, FLAG, "sees code with interrupts off")      \
    F(r, U32, counts, FLAG, "events, for profile -e and -c")   \
    F(r, TEXT64, why, NAME, "it is not usable")

// system.profile.counters
#define SYSINFO_COUNTERS_FIELDS(F, r)                          \
    F(r, U32, cpu, ID, "with these performance counters")      \
    F(r, TEXT16, interface, NAME, "how they are programmed")   \
    F(r, TEXT16, model, NAME, "whose events are known")        \
    F(r, U32, general, COUNT, "counters for any event")        \
    F(r, U32, fixed, COUNT, "counters for one event each")     \
    F(r, U32, width, COUNT, "bits of a counter")               \
    F(r, U32, taken, COUNT, "counters that others use")        \
    F(r, U32, events, COUNT, "names of events that it counts") \
    F(r, TEXT64, why, NAME, "there are none, or none that interrupt")

// system.profile.events
#define SYSINFO_EVENT_FIELDS(F, r)                 \
    F(r, TEXT32, name, NAME, "for profile -e")     \
    F(r, U32, usable, FLAG, "every CPU counts it") \
    F(r, TEXT64, why, NAME, "it is not usable")

// system.profile.callers
#define SYSINFO_CALLERS_FIELDS(F, r)               \
    F(r, U32, usable, FLAG, "for profile -g=lbr")  \
    F(r, U32, depth, COUNT, "calls that are kept") \
    F(r, TEXT64, why, NAME, "it is not usable")

// system.profile.sessions. The counters are described in <strobe/kbox.h>,
// struct sprofile_info.
#define SYSINFO_SESSION_FIELDS(F, r)                            \
    F(r, U32, id, ID, "number of the session, while it lives")  \
    F(r, U32, owner, ID, "task that profiles")                  \
    F(r, U32, target, ID, "task that is profiled; all: system") \
    F(r, U32, targets, COUNT, "tasks that are, and live")       \
    F(r, TEXT12, state, NAME, "taking, paused, for exec, over") \
    F(r, TEXT16, source, NAME, "that interrupts for it")        \
    F(r, U32, rate, HZ, "really set; 0: by events")             \
    F(r, U64, taken, COUNT, "samples that hit a target")        \
    F(r, U64, lost, COUNT, "of these, no room in the ring")     \
    F(r, U64, missed, COUNT, "ticks that came late")            \
    F(r, U64, throttled, COUNT, "ticks not looked at")          \
    F(r, U64, in_sampling, COUNT, "ticks due in sampling")      \
    F(r, U64, others, COUNT, "ticks outside the target")        \
    F(r, U64, used, BYTES, "in the rings, not read yet")        \
    F(r, U64, room, BYTES, "the rings of all CPUs together")    \
    F(r, U64, cycles, CYCLES, "spent on its samples")           \
    F(r, U64, interrupts, COUNT, "that these are of")           \
    F(r, U64, elapsed, NS, "since it began, without pauses")

// system.profile.traces: of events
#define SYSINFO_TRACE_FIELDS(F, r)                               \
    F(r, U32, owner, ID, "task that traces")                     \
    F(r, U32, target, ID, "task that is traced; all: system")    \
    F(r, TEXT12, state, NAME, "taking, over")                    \
    F(r, U32, points, COUNT, "kinds of events that it records")  \
    F(r, U64, flight, NS, "only the last of this time; 0: all")  \
    F(r, U64, room, BYTES, "the rings of all CPUs together")     \
    F(r, U64, read, COUNT, "events that were read")              \
    F(r, U64, lost, COUNT, "events, no room, or throttled")      \
    F(r, U64, throttled, COUNT, "of them, to bound the cost")    \
    F(r, U64, overwritten, COUNT, "events of a flight, too old") \
    F(r, U64, elapsed, NS, "since it began")

// system.profile.totals: over all sessions, existing and ended.
#define SYSINFO_SAMPLING_FIELDS(F, r)                       \
    F(r, U32, sessions, COUNT, "there are")                 \
    F(r, U32, most, COUNT, "there can be at once")          \
    F(r, U64, begun, COUNT, "sessions since the start")     \
    F(r, U64, taken, COUNT, "samples that hit a target")    \
    F(r, U64, lost, COUNT, "of these, no room in the ring") \
    F(r, U64, missed, COUNT, "ticks that came late")        \
    F(r, U64, throttled, COUNT, "ticks not looked at")      \
    F(r, U64, in_sampling, COUNT, "ticks due in sampling")  \
    F(r, U64, others, COUNT, "ticks outside the target")    \
    F(r, U64, cycles, CYCLES, "spent on samples")           \
    F(r, U64, nmis_unclaimed, COUNT, "NMIs that no handler claimed")

// system.locks. Hold times are measured for about every 63rd hold.
#define SYSINFO_LOCK_FIELDS(F, r)                          \
    F(r, TEXT32, name, NAME, "of the class")               \
    F(r, TEXT12, kind, NAME, "spinlock, mutex")            \
    F(r, U64, acquisitions, COUNT, "times taken")          \
    F(r, U64, contended, COUNT, "of these, after waiting") \
    F(r, U64, wait, CYCLES, "waited for it")               \
    F(r, U64, held, COUNT, "holds that were measured")     \
    F(r, U64, hold, CYCLES, "that these took")

// system.slabs
#define SYSINFO_SLAB_FIELDS(F, r)                        \
    F(r, TEXT32, name, NAME, "of the cache")             \
    F(r, U32, object_size, BYTES, "of an object")        \
    F(r, U32, objects, COUNT, "in use")                  \
    F(r, U32, room, COUNT, "objects that fit its slabs") \
    F(r, U64, memory, BYTES, "that its slabs take")

// system.audit: a record for each CPU, with `sum` the sum of its accounts and
// `elapsed` its TSC; and two for all CPUs together, with the sum of all
// threads' accounts (sum) and that of the CPUs' accounts (elapsed). All as of
// one instant.
#define SYSINFO_AUDIT_FIELDS(F, r)                            \
    F(r, U32, cpu, ID, "the CPU; all: the threads' accounts") \
    F(r, TEXT12, account, NAME, "what is compared")           \
    F(r, U64, elapsed, CYCLES, "that must be accounted for")  \
    F(r, U64, sum, CYCLES, "of the accounts")                 \
    F(r, S64, difference, CYCLES, "elapsed - sum")

// system.kernel
#define SYSINFO_KERNEL_FIELDS(F, r)                      \
    F(r, TEXT16, name, NAME, "of the subsystem")         \
    F(r, U64, cycles, CYCLES, "kernel time spent in it") \
    F(r, U64, calls, COUNT, "times entered")

// system.text: the places of the kernel's code that can be patched.
#define SYSINFO_TEXT_FIELDS(F, r)                              \
    F(r, U32, entries, COUNT, "functions that can be patched") \
    F(r, U32, branches, COUNT, "branches (trace points)")      \
    F(r, U32, patched, COUNT, "of both: no NOP at present")    \
    F(r, U32, patches, COUNT, "changes so far")                \
    F(r, U64, longest, CYCLES, "for which one stopped the other CPUs")

// system.protection: mapped pages (of 4 KiB; a large page counts as many).
#define SYSINFO_PROTECTION_FIELDS(F, r)                                 \
    F(r, U32, forbids_execution, FLAG, "the CPU can, and does (NX)")    \
    F(r, U64, kernel, COUNT, "pages of the kernel's tables")            \
    F(r, U64, kernel_executable, COUNT, "of those: executable")         \
    F(r, U64, kernel_both, COUNT, "of those: writable and executable")  \
    F(r, U64, kernel_user, COUNT, "of those: within reach of programs") \
    F(r, U64, user, COUNT, "pages of all tasks")                        \
    F(r, U64, user_executable, COUNT, "of those: executable")           \
    F(r, U64, user_both, COUNT, "of those: writable and executable")

// system.users: those that have tasks, or hold resources.
#define SYSINFO_USER_FIELDS(F, r)                                          \
    F(r, U32, uid, ID, "number of the user")                               \
    F(r, U32, tasks, COUNT, "it has")                                      \
    F(r, U32, threads, COUNT, "of these")                                  \
    F(r, U64, memory, BYTES, "of these; shared pages with each of them")   \
    F(r, U64, held, BYTES, "by the kernel: pipes, phones, locks, signals") \
    F(r, U64, share, BYTES, "the most that may be held; 0: root")

// system.sensors: the files of /sensors.
#define SYSINFO_SENSOR_FIELDS(F, r)                                      \
    F(r, TEXT64, path, NAME, "of the file")                              \
    F(r, TEXT12, type, NAME, "what it holds; none: not given yet")       \
    F(r, TEXT12, state, NAME, "new, open, closed; of the kernel's: off") \
    F(r, U32, owner, ID, "task that created it; 0: the kernel")          \
    F(r, U32, readers, COUNT, "descriptors of others than the owner")    \
    F(r, U64, bytes, BYTES, "of header and data")

// system.usb: the devices, hubs included, in the order of slots.
#define SYSINFO_USB_FIELDS(F, r)                                               \
    F(r, TEXT24, path, NAME, "controller-port of the root, .port of each hub") \
    F(r, TEXT12, id, NAME, "vendor:product")                                   \
    F(r, TEXT12, speed, NAME, "low, full, high, super, super+")                \
    F(r, TEXT16, kind, NAME, "keyboard, hub, storage, or not used")            \
    F(r, U32, controller, ID, "its number")                                    \
    F(r, U32, slot, ID, "of the controller")

// system.disks: sticks and SATA disks, each followed by its partitions.
#define SYSINFO_DISK_FIELDS(F, r)                                          \
    F(r, TEXT32, name, NAME, "for disk= and mount")                        \
    F(r, TEXT12, bus, NAME, "usb, ahci")                                   \
    F(r, U64, bytes, BYTES, "of the disk, or the partition")               \
    F(r, TEXT64, what, NAME, "the disk's model, or the kind of partition") \
    F(r, TEXT64, state, NAME, "mounted, or why it cannot be")

// system.net: the network card in use. What was received and not delivered, by
// reason: bad to queue_full; what could not be sent: no_room.
#define SYSINFO_NET_FIELDS(F, r)                                            \
    F(r, TEXT32, card, NAME, "driver and place")                            \
    F(r, TEXT64, state, NAME, "ready, or why not")                          \
    F(r, TEXT24, mac, NAME, "the card's address")                           \
    F(r, TEXT16, address, NAME, "IPv4")                                     \
    F(r, TEXT16, mask, NAME, "of its network")                              \
    F(r, TEXT16, gateway, NAME, "to all others")                            \
    F(r, U32, link, COUNT, "Mbit/s; 0: none")                               \
    F(r, U64, in_packets, COUNT, "received")                                \
    F(r, U64, in_bytes, BYTES, "of these")                                  \
    F(r, U64, out_packets, COUNT, "sent")                                   \
    F(r, U64, out_bytes, BYTES, "of these")                                 \
    F(r, U64, missed, COUNT, "frames: the card's ring was full")            \
    F(r, U64, bad, COUNT, "frames: damaged, or too long")                   \
    F(r, U64, checksum, COUNT, "packets: wrong sum")                        \
    F(r, U64, malformed, COUNT, "packets: wrong lengths")                   \
    F(r, U64, unwanted, COUNT, "packets: not for us, unknown, fragments")   \
    F(r, U64, no_memory, COUNT, "packets")                                  \
    F(r, U64, no_socket, COUNT, "datagrams: nobody listens")                \
    F(r, U64, queue_full, COUNT, "datagrams: the program reads too slowly") \
    F(r, U64, no_room, COUNT, "sends that found the ring full")

// system.errors
#define SYSINFO_ERROR_FIELDS(F, r)              \
    F(r, TEXT32, name, NAME, "what went wrong") \
    F(r, U64, count, COUNT, "times")            \
    F(r, TEXT64, meaning, NAME, "what is done about it")

// system.functions: what call tracing can choose (<strobe/calls.h>), ascending
// by address. A function from a header has the file of the object that it was
// compiled into. system.functions.ADDRESS (not listed): the one, of all, that
// contains the address.
#define SYSINFO_FUNCTION_FIELDS(F, r)           \
    F(r, U32, address, ADDRESS, "of its entry") \
    F(r, U32, size, BYTES, "of its code")       \
    F(r, TEXT40, name, NAME, "of the function") \
    F(r, TEXT40, file, NAME, "its source")

#define SYSINFO_RECORDS(R)    \
    R(UPTIME, uptime)         \
    R(CPU, cpu)               \
    R(PHYSMEM, physmem)       \
    R(LOAD, load)             \
    R(TOTALS, totals)         \
    R(TASK, task)             \
    R(THREAD, thread)         \
    R(EXCEPTION, exception)   \
    R(IPCC, ipcc)             \
    R(SYSCALL, syscall)       \
    R(CLOCK, clock)           \
    R(SAMPLER, sampler)       \
    R(SESSION, session)       \
    R(TRACE, trace)           \
    R(SAMPLING, sampling)     \
    R(LOCK, lock)             \
    R(SLAB, slab)             \
    R(AUDIT, audit)           \
    R(KERNEL, kernel)         \
    R(PROTECTION, protection) \
    R(TEXT, text)             \
    R(ERROR, error)           \
    R(USER, user)             \
    R(SENSOR, sensor)         \
    R(COUNTERS, counters)     \
    R(EVENT, event)           \
    R(CALLERS, callers)       \
    R(READING, reading)       \
    R(USB, usb)               \
    R(NET, net)               \
    R(DISK, disk)             \
    R(FUNCTION, function)

// ---- generated from the tables

// SYSINFO_RECORD_TASK, ...: the result of SYSINFO_WHAT for data.
enum sysinfo_record {
    SYSINFO_RECORD_NONE,
#define SYSINFO_RECORD_ENUM(upper, lower) SYSINFO_RECORD_##upper,
    SYSINFO_RECORDS(SYSINFO_RECORD_ENUM)
#undef SYSINFO_RECORD_ENUM
        SYSINFO_RECORD_TYPES
};

// 64-bit types aligned as on i386, on every architecture.
typedef uint64_t sysinfo_u64 __attribute__((aligned(4)));
typedef int64_t sysinfo_s64 __attribute__((aligned(4)));

#define SYSINFO_MEMBER_U32(name) uint32_t name;
#define SYSINFO_MEMBER_S32(name) int32_t name;
#define SYSINFO_MEMBER_U64(name) sysinfo_u64 name;
#define SYSINFO_MEMBER_S64(name) sysinfo_s64 name;
#define SYSINFO_MEMBER_TEXT12(name) char name[12];
#define SYSINFO_MEMBER_TEXT16(name) char name[16];
#define SYSINFO_MEMBER_TEXT24(name) char name[24];
#define SYSINFO_MEMBER_TEXT32(name) char name[32];
#define SYSINFO_MEMBER_TEXT40(name) char name[40];
#define SYSINFO_MEMBER_TEXT64(name) char name[64];
#define SYSINFO_MEMBER(r, type, name, unit, meaning) SYSINFO_MEMBER_##type(name)

// struct sysinfo_task, ... Texts end with a NUL inside their field.
#define SYSINFO_STRUCT(upper, lower)               \
    struct sysinfo_##lower {                       \
        SYSINFO_##upper##_FIELDS(SYSINFO_MEMBER, ) \
    };
SYSINFO_RECORDS(SYSINFO_STRUCT)
#undef SYSINFO_STRUCT
