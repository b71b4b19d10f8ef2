// I/O ports (SDM vol. 1, 19.3).
#pragma once

#include "lib/types.h"

static ALWAYS_INLINE u8 in8(u16 port)
{
    u8 v;
    __asm__ volatile("inb %1, %0" : "=a"(v) : "Nd"(port));
    return v;
}
static ALWAYS_INLINE void out8(u16 port, u8 v)
{
    __asm__ volatile("outb %0, %1" ::"a"(v), "Nd"(port));
}
static ALWAYS_INLINE u16 in16(u16 port)
{
    u16 v;
    __asm__ volatile("inw %1, %0" : "=a"(v) : "Nd"(port));
    return v;
}
static ALWAYS_INLINE void out16(u16 port, u16 v)
{
    __asm__ volatile("outw %0, %1" ::"a"(v), "Nd"(port));
}
static ALWAYS_INLINE u32 in32(u16 port)
{
    u32 v;
    __asm__ volatile("inl %1, %0" : "=a"(v) : "Nd"(port));
    return v;
}
static ALWAYS_INLINE void out32(u16 port, u32 v)
{
    __asm__ volatile("outl %0, %1" ::"a"(v), "Nd"(port));
}
