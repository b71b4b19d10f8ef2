// Undefined behaviour (`make UBSAN=1`): the compiler calls one of these
// functions on undefined behaviour. Each reports the place and the kind, and
// panics.
//
// The structures are defined by the compilers (GCC 12 libsanitizer
// ubsan/ubsan_handlers.h and LLVM's documentation of
// UndefinedBehaviorSanitizer).
#ifdef UBSAN

#include "kernel/base/log.h"

struct location {
    const char *file;
    u32 line, column;
};

struct type {
    u16 kind; // 0: integer
    u16 info; // bit 0: signed; the rest: log2 of the width
    char name[];
};

struct overflow {
    struct location at;
    const struct type *type;
};
struct shift {
    struct location at;
    const struct type *left, *right;
};
struct bounds {
    struct location at;
    const struct type *array, *index;
};
struct mismatch {
    struct location at;
    const struct type *type;
    u8 log_alignment, access;
};
struct invalid_value {
    struct location at;
    const struct type *type;
};
struct only_location {
    struct location at;
};

// A value as the compiler passes it: the value itself if it fits a word, else
// its address.
static s64 value_of(const struct type *t, u32 raw)
{
    u32 bits = 1u << (t->info >> 1);
    if (bits <= 32)
        return t->info & 1 ? (s64)((s32)(raw << (32 - bits)) >> (32 - bits))
                           : (s64)raw;
    return *(const s64 *)raw;
}

#define REPORT(where, ...) report(&(where)->at, __VA_ARGS__)

static NORETURN void report(const struct location *l, const char *what,
                            const char *type, s64 a, s64 b)
{
    panic("ubsan: %s:%u:%u: %s, type %s, values %lld and %lld", l->file,
          l->line, l->column, what, type, a, b);
}

#define HANDLER(name) void __ubsan_handle_##name

#define BINARY(id, text)                                     \
    HANDLER(id)(struct overflow * d, u32 a, u32 b);          \
    HANDLER(id)(struct overflow * d, u32 a, u32 b)           \
    {                                                        \
        REPORT(d, text, d->type->name, value_of(d->type, a), \
               value_of(d->type, b));                        \
    }

BINARY(add_overflow, "sum overflows")
BINARY(sub_overflow, "difference overflows")
BINARY(mul_overflow, "product overflows")
BINARY(divrem_overflow, "division by zero or overflow")

HANDLER(negate_overflow)(struct overflow *d, u32 a);
HANDLER(negate_overflow)(struct overflow *d, u32 a)
{
    REPORT(d, "negation overflows", d->type->name, value_of(d->type, a), 0);
}

HANDLER(shift_out_of_bounds)(struct shift *d, u32 a, u32 b);
HANDLER(shift_out_of_bounds)(struct shift *d, u32 a, u32 b)
{
    REPORT(d, "shift too far or of a negative value", d->left->name,
           value_of(d->left, a), value_of(d->right, b));
}

HANDLER(out_of_bounds)(struct bounds *d, u32 index);
HANDLER(out_of_bounds)(struct bounds *d, u32 index)
{
    REPORT(d, "index out of bounds", d->array->name, value_of(d->index, index),
           0);
}

HANDLER(type_mismatch_v1)(struct mismatch *d, u32 address);
HANDLER(type_mismatch_v1)(struct mismatch *d, u32 address)
{
    bool misaligned = address & ((1u << d->log_alignment) - 1);
    REPORT(d,
           !address     ? "null pointer"
           : misaligned ? "misaligned pointer"
                        : "object too small",
           d->type->name, address, 0);
}

HANDLER(pointer_overflow)(struct only_location *d, u32 base, u32 result);
HANDLER(pointer_overflow)(struct only_location *d, u32 base, u32 result)
{
    REPORT(d, "pointer overflows", "pointer", base, result);
}

HANDLER(load_invalid_value)(struct invalid_value *d, u32 value);
HANDLER(load_invalid_value)(struct invalid_value *d, u32 value)
{
    REPORT(d, "not a value of its type", d->type->name,
           value_of(d->type, value), 0);
}

HANDLER(vla_bound_not_positive)(struct invalid_value *d, u32 bound);
HANDLER(vla_bound_not_positive)(struct invalid_value *d, u32 bound)
{
    REPORT(d, "array length is not positive", d->type->name,
           value_of(d->type, bound), 0);
}

#define PLAIN(id, text)                    \
    HANDLER(id)(struct only_location * d); \
    HANDLER(id)(struct only_location * d)  \
    {                                      \
        REPORT(d, text, "none", 0, 0);     \
    }

PLAIN(builtin_unreachable, "unreachable code is reached")
PLAIN(missing_return, "a function ends without its value")
PLAIN(nonnull_arg, "null for an argument that must not be")
PLAIN(nonnull_return_v1, "null from a function that never returns it")
PLAIN(invalid_builtin, "clz or ctz of zero")

#endif
