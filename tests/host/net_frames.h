// Frames that a machine could get, for test_net and the harness of
// tests/fuzz/host/net.c.
#pragma once

#include <string.h>

#include "lib/types.h"

#define FRAME_MAX 1514
#define HEADERS 42 // Ethernet, IPv4, UDP

static const u8 OUR_MAC[6] = { 2, 0, 0, 0, 0, 1 };
static const u8 PEER_MAC[6] = { 2, 0, 0, 0, 0, 2 };
static const u8 OUR_IP[4] = { 10, 0, 0, 2 }, PEER_IP[4] = { 10, 0, 0, 1 };

static inline u16 sum(const u8 *at, u32 bytes, u32 begin)
{
    u64 total = begin;
    for (u32 i = 0; i < bytes; i++)
        total += i % 2 ? at[i] : (u32)at[i] << 8;
    while (total >> 16)
        total = (total & 0xffff) + (total >> 16);
    return (u16)~total;
}

static inline void put16(u8 *at, u32 value)
{
    at[0] = (u8)(value >> 8);
    at[1] = (u8)value;
}

// Puts right sums into an IPv4 frame, as far as its lengths allow.
static inline void mend(u8 *f, u32 bytes)
{
    u32 header = (f[14] & 15) * 4u;
    if (bytes < 34 || header < 20 || 14 + header + 8 > bytes)
        return;
    put16(f + 24, 0);
    put16(f + 24, sum(f + 14, header, 0));
    u8 *body = f + 14 + header;
    u32 size = ((u32)f[16] << 8 | f[17]) - header;
    if (size < 8 || size > bytes - 14 - header)
        return;
    if (f[23] == 1) {
        put16(body + 2, 0);
        put16(body + 2, sum(body, size, 0));
    } else if (f[23] == 17) {
        u32 pseudo = 17 + size;
        for (u32 i = 26; i < 34; i += 2)
            pseudo += (u32)f[i] << 8 | f[i + 1];
        put16(body + 6, 0);
        put16(body + 6, sum(body, size, pseudo));
    }
}

static inline u32 make_ip(u8 *f, u8 protocol, const u8 *body, u32 size)
{
    memcpy(f, OUR_MAC, 6);
    memcpy(f + 6, PEER_MAC, 6);
    put16(f + 12, 0x0800);
    const u8 header[12] = { 0x45, 0, 0, 0, 0, 1, 0, 0, 64, protocol };
    memcpy(f + 14, header, 12);
    put16(f + 16, 20 + size);
    memcpy(f + 26, PEER_IP, 4);
    memcpy(f + 30, OUR_IP, 4);
    memcpy(f + 34, body, size);
    mend(f, 34 + size);
    return 34 + size;
}

static inline u32 make_ping(u8 *f, u32 size)
{
    u8 body[FRAME_MAX] = { 8, 0, 0, 0, 1, 2, 3, 4 };
    for (u32 i = 8; i < size + 8; i++)
        body[i] = (u8)i;
    return make_ip(f, 1, body, size + 8);
}

static inline u32 make_udp(u8 *f, u32 port, const void *data, u32 size)
{
    u8 body[FRAME_MAX] = { 0x10, 0 };
    put16(body + 2, port);
    put16(body + 4, 8 + size);
    memcpy(body + 8, data, size);
    return make_ip(f, 17, body, 8 + size);
}

static inline u32 make_arp(u8 *f, u32 operation)
{
    const u8 head[8] = { 0, 1, 8, 0, 6, 4, 0, (u8)operation };
    memset(f, 0xff, 6);
    memcpy(f + 6, PEER_MAC, 6);
    put16(f + 12, 0x0806);
    memcpy(f + 14, head, 8);
    memcpy(f + 22, PEER_MAC, 6);
    memcpy(f + 28, PEER_IP, 4);
    memcpy(f + 32, OUR_MAC, 6);
    memcpy(f + 38, OUR_IP, 4);
    return 42;
}

// An answer of a DHCP server to the request that is in progress.
static inline u32 make_dhcp(u8 *f, u32 xid, u8 type)
{
    u8 m[300] = { 2, 1, 6 };
    const u8 options[] = { 99,  130, 83, 99, 53, 1,  type, 54,  4, 10, 0,
                           0,   1,   51, 4,  0,  0,  0,    200, 1, 4,  255,
                           255, 255, 0,  3,  4,  10, 0,    0,   1, 255 };
    put16(m + 4, xid >> 16);
    put16(m + 6, xid & 0xffff);
    memcpy(m + 16, OUR_IP, 4);
    memcpy(m + 28, OUR_MAC, 6);
    memcpy(m + 236, options, sizeof(options));
    u32 bytes = make_udp(f, 68, m, sizeof(m));
    put16(f + 34, 67);
    memset(f + 30, 0xff, 4);
    mend(f, bytes);
    return bytes;
}
