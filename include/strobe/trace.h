// Trace points as programs see them: their numbers, and the records of their
// fields. Generated from points.def; fields are packed, little-endian.
#pragma once

#include <stdint.h>

enum trace_number {
#define POINT(group, name, fields, when) TRACE_##group##_##name,
#include <strobe/points.def>
#undef POINT
    TRACE_POINTS
};

#define U8(name) uint8_t name;
#define U16(name) uint16_t name;
#define U32(name) uint32_t name;
#define U64(name) uint64_t name;
#define POINT(group, name, fields, when) \
    struct trace_##group##_##name {      \
        fields                           \
    } __attribute__((packed));
#include <strobe/points.def>
#undef POINT
#undef U8
#undef U16
#undef U32
#undef U64
