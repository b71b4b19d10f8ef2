#include "kernel/task/tls.h"

#include "arch/mmu.h"
#include "kernel/base/errno.h"
#include "kernel/sched/thread.h"

// Linux's struct user_desc (asm/ldt.h).
struct user_desc {
    u32 entry, base, limit;
    u32 flags;
};
#define DESC_32BIT 1u
#define DESC_CONTENTS(f) ((f) >> 1 & 3)
#define DESC_READ_EXEC_ONLY 8u
#define DESC_PAGES 16u
#define DESC_NOT_PRESENT 32u
#define DESC_USABLE 64u

static bool is_empty(const struct user_desc *d)
{
    return !d->base && !d->limit &&
           (d->flags & ~DESC_USABLE & ~DESC_32BIT) ==
               (DESC_READ_EXEC_ONLY | DESC_NOT_PRESENT);
}

static bool is_zero(const struct user_desc *d)
{
    return !d->base && !d->limit && !d->flags;
}

// Only present 32-bit data segments are allowed, as on Linux. IRET to a 16-bit
// stack segment changes only the low half of ESP (SDM vol. 3, 6.14.1): the high
// half would leak the address of the kernel stack to the program.
static bool is_allowed(const struct user_desc *d)
{
    return d->flags & DESC_32BIT && DESC_CONTENTS(d->flags) <= 1 &&
           !(d->flags & DESC_NOT_PRESENT);
}

// A data segment descriptor with DPL 3 (SDM vol. 3, 3.4.5).
static u64 encode(const struct user_desc *d)
{
    u32 writable = d->flags & DESC_READ_EXEC_ONLY ? 0 : 1u << 9;
    u32 present = d->flags & DESC_NOT_PRESENT ? 0 : 1u << 15;
    u32 high = (d->base & 0xff000000) | (d->base >> 16 & 0xff) |
               (d->limit & 0xf0000) | writable | 1u << 8 /* accessed */ |
               DESC_CONTENTS(d->flags) << 10 | 1u << 12 | 3u << 13 | present |
               (d->flags & DESC_32BIT) << 22 |
               (d->flags & DESC_PAGES ? 1u << 23 : 0) |
               (d->flags & DESC_USABLE ? 1u << 20 : 0);
    u32 low = (d->base & 0xffff) << 16 | (d->limit & 0xffff);
    return (u64)high << 32 | low;
}

static void decode(u64 descriptor, struct user_desc *d)
{
    u32 low = (u32)descriptor, high = (u32)(descriptor >> 32);
    d->base = low >> 16 | (high & 0xff) << 16 | (high & 0xff000000);
    d->limit = (low & 0xffff) | (high & 0xf0000);
    d->flags = (high >> 22 & 1) | (high >> 10 & 3) << 1 |
               (high & 1u << 9 ? 0 : DESC_READ_EXEC_ONLY) |
               (high & 1u << 23 ? DESC_PAGES : 0) |
               (high & 1u << 15 ? 0 : DESC_NOT_PRESENT) |
               (high & 1u << 20 ? DESC_USABLE : 0);
}

static u32 free_entry(const struct thread *t)
{
    for (u32 i = 0; i < GDT_TLS_COUNT; i++) {
        u64 d = t == current ? arch_get_tls(i) : t->arch.tls[i];
        if (!d)
            return GDT_TLS_FIRST + i;
    }
    return 0;
}

int tls_set_from_user(struct thread *t, u32 user)
{
    struct user_desc d;
    if (copy_from_user(&d, user, sizeof(d)))
        return -EFAULT;
    if (d.entry == ~0u) {
        d.entry = free_entry(t);
        if (!d.entry)
            return -ESRCH;
        if (user_store_u32(user, d.entry))
            return -EFAULT;
    }
    u32 index = d.entry - GDT_TLS_FIRST;
    if (index >= GDT_TLS_COUNT)
        return -EINVAL;
    bool clear = is_empty(&d) || is_zero(&d);
    if (!clear && !is_allowed(&d))
        return -EINVAL;
    u64 descriptor = clear ? 0 : encode(&d);
    if (t == current)
        arch_set_tls(index, descriptor);
    else
        t->arch.tls[index] = descriptor;
    return 0;
}

int tls_get_to_user(u32 user)
{
    struct user_desc d;
    if (copy_from_user(&d, user, sizeof(d)))
        return -EFAULT;
    u32 index = d.entry - GDT_TLS_FIRST;
    if (index >= GDT_TLS_COUNT)
        return -EINVAL;
    decode(arch_get_tls(index), &d);
    return copy_to_user(user, &d, sizeof(d));
}
