// perf.data as Strobe writes and reads it: Linux's layout (docs/perf-data.md),
// little endian, every 64-bit field at a multiple of 8 bytes.
#pragma once

#include <stddef.h>
#include <stdint.h>

// The file: header, ids, attributes, records. Once the file is sealed, the
// feature table and the features follow the records.
#define PERF_MAGIC "PERFILE2"

struct perf_section {
    uint64_t offset, size;
};

#define PERF_EVENTS_MAX 16 // in a file that Strobe writes

struct perf_header {
    char magic[8];
    uint64_t size;      // of this header
    uint64_t attr_size; // of one struct perf_file_attr
    struct perf_section attrs;
    struct perf_section data; // size 0: not sealed
    struct perf_section event_types;
    uint64_t features[4]; // a bitmap; the table has a section for each set bit
};

// struct perf_event_attr, its first published version.
struct perf_attr {
    uint32_t type, size;
    uint64_t config;
    uint64_t period; // or the frequency, with PERF_ATTR_FREQ
    uint64_t sample_type;
    uint64_t read_format;
    uint64_t flags;
    uint32_t wakeup, breakpoint_type;
    uint64_t breakpoint_address;
};
#define PERF_TYPE_HARDWARE 0
#define PERF_TYPE_SOFTWARE 1
#define PERF_TYPE_HW_CACHE 3
#define PERF_TYPE_RAW 4
#define PERF_SOFTWARE_CPU_CLOCK 0 // its period is in nanoseconds

#define PERF_SAMPLE_IP (1u << 0)
#define PERF_SAMPLE_TID (1u << 1)
#define PERF_SAMPLE_TIME (1u << 2)
#define PERF_SAMPLE_CALLCHAIN (1u << 5)
#define PERF_SAMPLE_CPU (1u << 7)
#define PERF_SAMPLE_PERIOD (1u << 8)
#define PERF_SAMPLE_IDENTIFIER (1u << 16)
// The fields of struct perf_sample, except its chain.
#define PERF_SAMPLE_OURS                                                     \
    (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | \
     PERF_SAMPLE_PERIOD | PERF_SAMPLE_IDENTIFIER)

#define PERF_READ_FORMAT_ID 4

#define PERF_ATTR_EXCLUDE_USER (1u << 4)
#define PERF_ATTR_EXCLUDE_KERNEL (1u << 5)
#define PERF_ATTR_MMAP (1u << 8)
#define PERF_ATTR_COMM (1u << 9)
#define PERF_ATTR_FREQ (1u << 10)
#define PERF_ATTR_TASK (1u << 13)
#define PERF_ATTR_SAMPLE_ID_ALL (1u << 18)
#define PERF_ATTR_MMAP2 (1u << 23)
#define PERF_ATTR_COMM_EXEC (1u << 24)

struct perf_file_attr {
    struct perf_attr attr;
    struct perf_section ids; // of uint64_t
};

// --- records ----------------------------------------------------------------

struct perf_record {
    uint32_t type; // PERF_RECORD_...
    uint16_t misc;
    uint16_t size; // bytes, a multiple of 8, this header included
};
#define PERF_RECORD_LOST 2
#define PERF_RECORD_COMM 3
#define PERF_RECORD_EXIT 4
#define PERF_RECORD_FORK 7
#define PERF_RECORD_SAMPLE 9
#define PERF_RECORD_MMAP2 10
// Strobe's own records use the deprecated type HEADER_EVENT_TYPE, which every
// perf skips.
#define PERF_RECORD_STROBE 65

#define PERF_MISC_CPUMODE 7
#define PERF_MISC_KERNEL 1
#define PERF_MISC_USER 2
#define PERF_MISC_COMM_EXEC (1u << 13)
#define PERF_MISC_MMAP_BUILD_ID (1u << 14)
#define PERF_MISC_BUILD_ID_SIZE \
    (1u << 15) // of an entry of PERF_FEATURE_BUILD_ID

// Ends every record except SAMPLE and STROBE.
struct perf_trailer {
    uint32_t pid, tid;
    uint64_t time; // ns
    uint32_t cpu, reserved;
    uint64_t id;
};

struct perf_sample {
    struct perf_record head;
    uint64_t id, ip;
    uint32_t pid, tid;
    uint64_t time; // ns, converted from the TSC
    uint32_t cpu;
    uint32_t flags; // SPROFILE_F_... of the sample; perf ignores it
    uint64_t period;
    // With PERF_SAMPLE_CALLCHAIN; without it a sample ends here.
    uint64_t depth; // entries of chain[], the marks included
    uint64_t chain[];
};
#define PERF_SAMPLE_PLAIN offsetof(struct perf_sample, depth)
// The entries that follow are the kernel's chain or the user's chain.
#define PERF_CONTEXT_KERNEL ((uint64_t)-128)
#define PERF_CONTEXT_USER ((uint64_t)-512)

struct perf_comm {
    struct perf_record head;
    uint32_t pid, tid;
    char name[16];
    struct perf_trailer trailer;
};

// FORK and EXIT.
struct perf_task {
    struct perf_record head;
    uint32_t pid, parent_pid, tid, parent_tid;
    uint64_t time;
    struct perf_trailer trailer;
};

// Followed by the path, padded to a multiple of 8, and a trailer.
struct perf_mmap2 {
    struct perf_record head;
    uint32_t pid, tid;
    uint64_t address, size, file_offset;
    uint8_t build_id_size; // with PERF_MISC_MMAP_BUILD_ID; else all zero
    uint8_t reserved[3];
    uint8_t build_id[20];
    uint32_t protection, flags;
    char path[];
};
#define PERF_KERNEL_PID UINT32_MAX // its mapping applies to every process
#define PERF_KERNEL_PATH "[kernel.kallsyms]"
// The path of the kernel's mapping is PERF_KERNEL_PATH followed by this
// symbol's name, and file_offset is the symbol's address. perf compares that
// with the address in the kernel's file, and so finds that the kernel was not
// relocated.
#define PERF_KERNEL_SYMBOL "text_start"
// Not "[vdso]": for that name perf would show the functions of the vDSO of the
// machine that it runs on.
#define PERF_VDSO_PATH "linux-gate.so.1"

struct perf_lost {
    struct perf_record head;
    uint64_t id, count;
    struct perf_trailer trailer;
};

// Bytes of one kind, padded to a multiple of 8; `size` is without the padding.
struct perf_strobe {
    struct perf_record head;
    char magic[8];
    uint32_t kind, size;
    uint8_t bytes[];
};
#define PERF_STROBE_MAGIC "Strobe\0" // and a NUL
enum perf_strobe_kind {
    PERF_STROBE_OPTIONS = 1, // struct sprofile_options, as requested
    PERF_STROBE_INFO = 2,    // struct sprofile_info; the last one is valid
    PERF_STROBE_LOAD = 3,    // struct perf_load
    PERF_STROBE_REMOTE = 4,  // struct perf_remote
    PERF_STROBE_TIMES = 5,   // struct perf_times of tasks
    // The bytes of feature n; the repair makes the feature table from these.
    PERF_STROBE_FEATURE = 256,
};
// The bits from here on: the event number of an OPTIONS, INFO or TIMES
// record.
#define PERF_STROBE_EVENT_SHIFT 16
#define PERF_STROBE_KIND_MASK 0xffffu

// Follows the MMAP2 of a program whose load bias is not 0.
struct perf_load {
    uint32_t task;
    uint32_t bias; // address in memory minus address in the file
    uint64_t time; // that of the MMAP2
};

// The exact times of a task in an event's session, in TSC cycles. Written at
// its end.
struct perf_times {
    uint32_t task, reserved;
    uint64_t user, kernel;
};

// How the records came to the developer's machine, if by `strobe remote`. The
// samples that were lost on the way are in LOST records, and in the last INFO.
struct perf_remote {
    uint32_t ended; // 0: the connection was lost before the session's end
    uint32_t reserved;
    uint64_t datagrams, lost, resent;
    uint64_t lost_bytes;   // of the file, before compression
    uint64_t lost_samples; // of all events
    uint64_t lost_records; // others
    // Of the measured machine: what it had to send and what it sent; CPU time
    // of the program that sends, and of the network's thread. 0 unless `ended`.
    uint64_t raw_bytes, sent_bytes;
    uint64_t program_ns, net_ns, elapsed_ns;
};

// --- features ---------------------------------------------------------------

#define PERF_FEATURE_BUILD_ID 2
#define PERF_FEATURE_HOSTNAME 3
#define PERF_FEATURE_OS_RELEASE 4
#define PERF_FEATURE_VERSION 5 // of the kernel that took the samples
#define PERF_FEATURE_ARCH 6
#define PERF_FEATURE_CPUS 7
#define PERF_FEATURE_CPU 8 // its name, and what its clock counts
#define PERF_FEATURE_COMMAND 11
#define PERF_FEATURE_EVENTS 12
#define PERF_FEATURE_TOPOLOGY 13 // packages and cores: perf_topology.h
#define PERF_FEATURE_CLOCK 29    // struct perf_date
#define PERF_FEATURE_HYBRID 30   // kinds of cores
#define PERF_FEATURES 32 // all features that Strobe knows are below this

// The date at a time of the samples' clock.
#define PERF_DATE_VERSION 1
struct perf_date {
    uint32_t version, id; // id: CLOCK_MONOTONIC
    uint64_t date_ns;     // since 1970
    uint64_t time_ns;
};

// One entry of PERF_FEATURE_BUILD_ID. The path, padded to a multiple of 8,
// follows.
struct perf_build_id {
    struct perf_record head; // type 0; misc: cpumode, PERF_MISC_BUILD_ID_SIZE
    uint32_t pid;
    uint8_t build_id[20];
    uint8_t build_id_size;
    uint8_t reserved[3];
    char path[];
};

_Static_assert(sizeof(struct perf_header) == 104, "");
_Static_assert(sizeof(struct perf_file_attr) == 80, "");
_Static_assert(sizeof(struct perf_sample) == 64, "");
_Static_assert(PERF_SAMPLE_PLAIN == 56, "");
_Static_assert(sizeof(struct perf_trailer) == 32, "");
_Static_assert(sizeof(struct perf_mmap2) == 72, "");
_Static_assert(sizeof(struct perf_build_id) == 36, "");
