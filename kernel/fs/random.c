// The random generator: ChaCha20 (RFC 8439, 2.3) with fast key erasure.
//
// Every request generates one block under the lock. Half of it replaces the
// key, so that earlier output cannot be recomputed; the other half is the key
// of the request, whose stream is generated without the lock. Entropy is xored
// into the key, which can only add to it. The first request seeds from the
// CPU's generator, the interrupt counts and the clock.

#include "kernel/fs/random.h"

#include "arch/clock.h"
#include "arch/cpu.h"
#include "arch/entropy.h"
#include "arch/irq.h"
#include "kernel/base/log.h"
#include "kernel/fs/devfs.h"
#include "kernel/sync/spinlock.h"
#include "lib/string.h"

#define KEY_WORDS 8
#define BLOCK_WORDS 16
#define BLOCK_BYTES (BLOCK_WORDS * sizeof(u32))
#define ROUNDS 20

struct chacha {
    u32 key[KEY_WORDS];
    u32 counter;
    u32 nonce[3];
};

static struct spinlock lock = SPINLOCK_INIT("random"); // guards what follows
static struct chacha state;
static bool seeded;

static u32 rotate(u32 x, u32 n)
{
    assert_checked(n && n < 32);
    return x << n | x >> (32 - n);
}

static ALWAYS_INLINE void quarter_round(u32 *x, u32 a, u32 b, u32 c, u32 d)
{
    x[a] += x[b];
    x[d] = rotate(x[d] ^ x[a], 16);
    x[c] += x[d];
    x[b] = rotate(x[b] ^ x[c], 12);
    x[a] += x[b];
    x[d] = rotate(x[d] ^ x[a], 8);
    x[c] += x[d];
    x[b] = rotate(x[b] ^ x[c], 7);
}

// The next block of the stream.
static void chacha_block(struct chacha *s, u32 out[BLOCK_WORDS])
{
    u32 x[BLOCK_WORDS] = { 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574 };
    memcpy(x + 4, s->key, sizeof(s->key));
    x[12] = s->counter++;
    memcpy(x + 13, s->nonce, sizeof(s->nonce));
    memcpy(out, x, BLOCK_BYTES);
    for (int i = 0; i < ROUNDS; i += 2) {
        quarter_round(x, 0, 4, 8, 12);
        quarter_round(x, 1, 5, 9, 13);
        quarter_round(x, 2, 6, 10, 14);
        quarter_round(x, 3, 7, 11, 15);
        quarter_round(x, 0, 5, 10, 15);
        quarter_round(x, 1, 6, 11, 12);
        quarter_round(x, 2, 7, 8, 13);
        quarter_round(x, 3, 4, 9, 14);
    }
    for (int i = 0; i < BLOCK_WORDS; i++)
        out[i] += x[i];
}

// Replaces the key; outputs 32 fresh bytes that are never generated again.
static void erase_key(u32 out[KEY_WORDS])
{
    spin_assert_held(&lock);
    u32 block[BLOCK_WORDS];

    chacha_block(&state, block);
    memcpy(state.key, block, sizeof(state.key));
    memcpy(out, block + KEY_WORDS, sizeof(state.key));
    memset(block, 0, sizeof(block));
    barrier();
}

static void mix(u32 a, u32 b)
{
    spin_assert_held(&lock);
    u64 now = rdtsc();

    state.nonce[0] = rotate(state.nonce[0], 7) ^ a;
    state.nonce[1] = rotate(state.nonce[1], 13) ^ (b + (u32)now);
    state.nonce[2] += (u32)(now >> 32) ^ rotate((u32)now, 11);
}

static void seed(void)
{
    spin_assert_held(&lock);
    assert(!seeded);
    u32 spare[KEY_WORDS];

    for (u32 i = 0; i < KEY_WORDS; i++) {
        u32 word;
        if (cpu_random_u32(&word))
            state.key[i] ^= word;
        mix(i, (u32)clock_now_ns());
        erase_key(spare);
    }
    for (u32 v = 0; v < VECTORS; v++) {
        u64 count = irq_count(this_cpu()->id, v);
        if (count != 0)
            mix(v, (u32)count);
    }
    erase_key(spare);
    seeded = true;
}

void random_stir(u32 event)
{
    u32 flags = spin_lock_irq(&lock);
    mix(event, state.counter);
    spin_unlock_irq(&lock, flags);
}

void random_bytes(void *buf, size_t n)
{
    struct chacha mine = { .counter = 0 };
    u32 block[BLOCK_WORDS];
    u32 flags = spin_lock_irq(&lock);
    if (!seeded)
        seed();
    mix(state.counter, (u32)n);
    erase_key(mine.key);
    spin_unlock_irq(&lock, flags);

    if (n <= sizeof(mine.key)) { // the key is as random as its stream
        memcpy(buf, mine.key, n);
        n = 0;
    }
    for (u8 *to = buf; n > 0;) {
        size_t part = MIN(n, BLOCK_BYTES);
        chacha_block(&mine, block);
        memcpy(to, block, part);
        to += part;
        n -= part;
    }
    memset(block, 0, sizeof(block));
    memset(&mine, 0, sizeof(mine));
    barrier();
}
