// Code without frame pointers, for tests of call chains: main calls outer,
// outer calls middle, middle calls inner, which gets nearly all samples.
// (Makefile: compiled with -fomit-frame-pointer, and such that stacks are
// realigned as in programs for glibc; no_cfi.c is the same without call frame
// information.)
#include <stdio.h>
#include <stdlib.h>

#define OUTLINE __attribute__((noinline, noclone))
#define ROOM 64 // words: more stack than a sample has by default

static volatile unsigned sink;

// Uses all registers.
OUTLINE static unsigned inner(unsigned a, unsigned b, unsigned c, unsigned n)
{
    unsigned d = a ^ b, e = b + c, f = c * 3, g = a - n;
    for (unsigned i = 0; i < n; i++) {
        a += b ^ i;
        b = (b << 3 | b >> 29) + c;
        c ^= d + e;
        d += f ^ a;
        e = e * 5 + g;
        f -= b;
        g ^= c + d;
    }
    return a ^ b ^ c ^ d ^ e ^ f ^ g;
}

// Realigns its stack, so that its caller's is known by a word of its frame
// only.
OUTLINE static unsigned middle(unsigned n)
{
    volatile unsigned room[ROOM] __attribute__((aligned(64)));
    for (unsigned i = 0; i < ROOM; i++)
        room[i] = n + i;
    unsigned a = inner(room[1], room[2], room[3], n);
    return a + room[n % ROOM];
}

OUTLINE static unsigned outer(unsigned n)
{
    volatile unsigned room[ROOM];
    for (unsigned i = 0; i < ROOM; i++)
        room[i] = n * i;
    unsigned a = middle(n);
    return a + room[n % ROOM];
}

int main(int argc, char *argv[])
{
    unsigned rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    for (unsigned i = 0; i < rounds; i++)
        sink += outer(20000 + i);
    printf("ok %u\n", sink != 1);
    return 0;
}
