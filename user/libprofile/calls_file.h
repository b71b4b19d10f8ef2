// The file that cprofile -o writes: a trace of the kernel's calls (FORMATS in
// docs/trace.md). A header of fixed size, and the kernel's records.
//
// The reader does not trust the file: sizes are checked against its length, its
// contents against a CRC-32. Numbers are little-endian.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <strobe/calls.h>

#define CALLS_FILE_MAGIC "STRBCALL"
#define CALLS_FILE_VERSION 2u

struct calls_file_header {
    char magic[8];        // CALLS_FILE_MAGIC, without its NUL
    uint32_t version;     // CALLS_FILE_VERSION
    uint32_t header_size; // offset of the records
    uint32_t record_size; // of struct calls_node, struct calls_arc
    uint32_t crc;         // CRC-32 of all bytes behind this member
    uint32_t build_id_size;
    uint8_t build_id[20]; // of the kernel
    char kernel[80];      // its version, as uname -v; ends with NUL
    char command[256];    // what was traced; ends with NUL
    struct calls_info info;
};

// A file in memory, whose bytes must live as long.
struct calls_file {
    struct calls_file_header header;
    // By info.mode one of both:
    const struct calls_node *nodes;
    const struct calls_arc *arcs;
};

bool calls_file_is(const void *bytes, size_t size);
// `bytes` must be aligned to 8. Returns NULL, or a message.
const char *calls_file_read(struct calls_file *f, const void *bytes,
                            size_t size);
// The size of one of its records: 0 if there is no such mode.
uint32_t calls_record_size(uint32_t mode);
// Fills the header's sizes and its CRC-32, of `records` behind it.
void calls_file_seal(struct calls_file_header *h, const void *records);
