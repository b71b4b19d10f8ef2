// lwIP's contract with the compiler and the machine (lwip/arch.h).
#pragma once

#include "kernel/net/lwip_port.h"
#include "lib/assert.h"

#include <limits.h>

// lwIP defines ssize_t only where limits.h has no SSIZE_MAX.
#if __STDC_HOSTED__
#include <sys/types.h>
#elif defined(SSIZE_MAX)
typedef int ssize_t;
#endif

#define LWIP_NO_INTTYPES_H 1
#define LWIP_NO_UNISTD_H 1
#define LWIP_NO_CTYPE_H 1
#define X8_F "x"
#define U16_F "u"
#define S16_F "d"
#define X16_F "x"
#define U32_F "u"
#define S32_F "d"
#define X32_F "x"
#define SZT_F "u"

#ifndef BYTE_ORDER
#define BYTE_ORDER LITTLE_ENDIAN
#endif
#define lwip_htons(n) __builtin_bswap16((u16_t)(n))
#define lwip_htonl(n) __builtin_bswap32((u32_t)(n))
#define LWIP_RAND() net_random()
// A broken invariant of lwIP is treated like one of the kernel.
#define LWIP_PLATFORM_ASSERT(text) assert(!text)
#define LWIP_PLATFORM_DIAG(text)
