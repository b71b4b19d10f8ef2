// String functions for the kernel, as ISO C defines them (and strnlen, strlcpy
// as POSIX and BSD do). User programs use their libc's instead.
//
// Any context, NMI included: they access only their arguments and never set the
// direction flag. The compiler itself calls memcpy, memmove, memset and memcmp,
// so they must exist under these names.
#include "lib/string.h"

#include "arch/instructions.h"
#include "kernel/debug/access.h"
#include "kernel/debug/kasan.h"

// GCC must not recognise a loop below as the function that it implements and
// replace it by a call to itself. (clang: -ffreestanding is enough.)
#ifndef __clang__
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif

// A word at any alignment that may alias anything.
typedef u32 __attribute__((may_alias, aligned(1))) any_u32;

#define WORD sizeof(u32)
#define ONES 0x01010101u
#define HIGHS 0x80808080u

void *memcpy(void *restrict dst, const void *restrict src, size_t n)
{
    check_read(src, n);
    check_write(dst, n);
    memory_copy(dst, src, n / WORD, n % WORD);
    return dst;
}

void *memmove(void *dst, const void *src, size_t n)
{
    // Unless dst is inside [src, src + n), copying upwards is correct; memcpy
    // reads each word before it writes at or above it.
    if ((uintptr_t)dst - (uintptr_t)src >= n)
        return memcpy(dst, src, n);
    u8 *d = (u8 *)dst + n;
    const u8 *s = (const u8 *)src + n;
    for (; n >= WORD; n -= WORD) {
        d -= WORD;
        s -= WORD;
        *(any_u32 *)d = *(const any_u32 *)s;
    }
    while (n-- > 0)
        *--d = *--s;
    return dst;
}

void *memset(void *dst, int c, size_t n)
{
    check_write(dst, n);
    memory_fill(dst, (u8)c * ONES, n / WORD, n % WORD);
    return dst;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const u8 *x = a, *y = b;
    while (n >= WORD && *(const any_u32 *)x == *(const any_u32 *)y) {
        x += WORD;
        y += WORD;
        n -= WORD;
    }
    for (; n > 0; n--, x++, y++) {
        if (*x != *y)
            return *x - *y;
    }
    return 0;
}

void *memchr(const void *s, int c, size_t n)
{
    for (const u8 *p = s; n > 0; n--, p++) {
        if (*p == (u8)c)
            return (void *)p;
    }
    return NULL;
}

static NO_KASAN size_t length(const char *s)
{
    const char *p = s;
    // Bytes up to a word boundary, then words: an aligned word is within one
    // page, so reading past the NUL never touches an unmapped page.
    for (; (uintptr_t)p % WORD != 0; p++) {
        if (*p == '\0')
            return p - s;
    }
    for (;; p += WORD) {
        u32 w = *(const any_u32 *)p;
        if ((w - ONES) & ~w & HIGHS)
            break;
    }
    while (*p != '\0')
        p++;
    return p - s;
}

size_t strlen(const char *s)
{
    size_t n = length(s);
    if (KASAN_ON)
        check_read(s, n + 1);
    return n;
}

size_t strnlen(const char *s, size_t max)
{
    size_t n = 0;
    while (n < max && s[n] != '\0')
        n++;
    return n;
}

int strcmp(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return (u8)*a - (u8)*b;
}

int strncmp(const char *a, const char *b, size_t n)
{
    for (; n > 0; n--, a++, b++) {
        if (*a != *b)
            return (u8)*a - (u8)*b;
        if (*a == '\0')
            break;
    }
    return 0;
}

char *strchr(const char *s, int c)
{
    for (;; s++) {
        if (*s == (char)c)
            return (char *)s;
        if (*s == '\0')
            return NULL;
    }
}

char *strrchr(const char *s, int c)
{
    const char *last = NULL;
    for (;; s++) {
        if (*s == (char)c)
            last = s;
        if (*s == '\0')
            return (char *)last;
    }
}

char *strstr(const char *s, const char *what)
{
    size_t n = strlen(what);
    if (n == 0)
        return (char *)s;
    while ((s = strchr(s, what[0]))) {
        if (strncmp(s, what, n) == 0)
            return (char *)s;
        s++;
    }
    return NULL;
}

size_t strlcpy(char *dst, const char *src, size_t size)
{
    size_t n = strlen(src);
    if (size > 0) {
        size_t fits = MIN(n, size - 1);
        memcpy(dst, src, fits);
        dst[fits] = '\0';
    }
    return n;
}
