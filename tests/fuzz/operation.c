// Makes an operation. A worker calls the kernel without its C library, because
// operations may destroy thread-local storage and errno.
#include "fuzz.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

// ebp is both the sixth argument and the frame pointer. A child of clone or
// vfork may be on any stack, or on its parent's: it makes two calls from its
// registers, and ends.
long raw(uint32_t number, const uint32_t a[ARGUMENTS])
{
    long r;
    __asm__ volatile("push %%ebp; push 20(%2); mov 16(%2), %%edi;"
                     "mov 12(%2), %%esi; mov 8(%2), %%edx; mov (%2), %%ebx;"
                     "mov 4(%2), %%ecx; pop %%ebp; int $0x80; pop %%ebp"
                     : "=a"(r)
                     : "0"(number), "c"(a)
                     : "ebx", "edx", "esi", "edi", "memory");
    return r;
}

static long raw_clone(uint32_t number, const uint32_t a[ARGUMENTS])
{
    long r;
    __asm__ volatile("push %%ebp; mov 16(%2), %%edi; mov 12(%2), %%esi;"
                     "mov 8(%2), %%edx; mov (%2), %%ebx; mov 4(%2), %%ecx;"
                     "int $0x80; test %%eax, %%eax; jnz 1f;"
                     "mov %3, %%eax; int $0x80;" // sched_yield
                     "xor %%ebx, %%ebx; mov %4, %%eax; int $0x80; ud2;"
                     "1: pop %%ebp"
                     : "=a"(r)
                     : "0"(number), "c"(a), "i"(SYS_sched_yield), "i"(SYS_exit)
                     : "ebx", "edx", "esi", "edi", "memory");
    return r;
}

long raw_call(uint32_t number, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    const uint32_t arguments[ARGUMENTS] = { a, b, c, d };
    return raw(number, arguments);
}

static long make(struct worker *w, uint32_t number, const uint32_t *a)
{
    if (number == SYS_clone || number == SYS_vfork)
        return raw_clone(number, a);
    if (number == SYS_fork && w->is_child)
        return -EAGAIN; // one generation of children only
    return raw(number, a);
}

static bool is_error(long r)
{
    return r < 0 && r > -4096;
}

static void keep_descriptors(struct worker *w, const struct operation *op,
                             long r, const uint32_t *values)
{
    uint32_t number = calls[op->call].number;
    if (call_gives_descriptor(op->call) && r > 2)
        w->fds[op->slot] = (int)r;
    bool is_pipe = number == SYS_pipe || number == SYS_pipe2;
    uint32_t room = (uint32_t)w->rooms[0];
    if (is_pipe && values[0] == room && r == 0) {
        w->fds[op->slot] = (int)w->rooms[0][0];
        w->fds[(op->slot + 1) % SLOTS] = (int)w->rooms[0][1];
    }
}

void operation_run(struct worker *w, const struct operation *op)
{
    const struct call *c = &calls[op->call];
    uint32_t values[ARGUMENTS] = { 0 };
    bool spares = call_spares_others(op->call);

    for (uint32_t i = 0; i < strlen(c->kinds); i++)
        values[i] = value_of(w, &op->argument[i], i, spares);
    // With another root, ".." would lead out of the jail.
    if (c->number == SYS_chroot && op->argument[0].kind == TOKEN_path)
        values[0] = (uint32_t) "/";
    __atomic_fetch_add(&shared->calls[op->call], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&shared->ops, 1, __ATOMIC_RELAXED);
    long r = make(w, c->number, values);
    // For some calls EINTR is the success.
    if (is_error(r) && r != -EINTR)
        __atomic_fetch_add(&shared->errors[op->call], 1, __ATOMIC_RELAXED);
    else
        keep_descriptors(w, op, r, values);
    if (c->number == SYS_fork && r == 0)
        w->is_child = true;
}
