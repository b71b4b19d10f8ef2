// printf formatting without a libc: see lib/format.h. Reentrant; accesses only
// its arguments and its stack, so it is safe in any context.
#include "lib/format.h"
#include "lib/assert.h"
#include "lib/string.h"

// The output: `len` counts every character, buf holds the first `room` of them.
struct output {
    char *buf;
    size_t room, len;
};

// One conversion: %[flags][width][.precision][size]letter
struct spec {
    bool left, zero, plus, space, alternate;
    int width;
    int precision; // -1: none given
    size_t size;   // of the argument, in bytes
    char letter;
};

#define NUMBER_MAX 65535 // larger widths and precisions are clamped

// 64-bit octal is the longest: 22 digits.
#define DIGITS_MAX 22

static void put(struct output *out, const char *text, size_t n)
{
    if (out->len < out->room)
        memcpy(out->buf + out->len, text, MIN(n, out->room - out->len));
    out->len += n;
}

static void put_repeated(struct output *out, char c, int n)
{
    if (n <= 0)
        return;
    if (out->len < out->room)
        memset(out->buf + out->len, c, MIN((size_t)n, out->room - out->len));
    out->len += n;
}

static void put_padded(struct output *out, const struct spec *s,
                       const char *text, size_t n)
{
    // No text measured here exceeds INT_MAX: a longer one needs no padding.
    int pad = n < (size_t)s->width ? s->width - (int)n : 0;
    if (!s->left)
        put_repeated(out, ' ', pad);
    put(out, text, n);
    if (s->left)
        put_repeated(out, ' ', pad);
}

// Writes the digits of `value` so that they end at `end`; returns their start.
// None for 0.
static char *digits(char *end, u64 value, u32 base, bool upper)
{
    assert_checked(base >= 8 && base <= 16); // DIGITS_MAX
    const char *set = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    // The 64-bit division is a library call on i386: used only while needed.
    for (; value > UINT32_MAX; value /= base)
        *--end = set[value % base];
    for (u32 low = (u32)value; low != 0; low /= base)
        *--end = set[low % base];
    return end;
}

static void put_number(struct output *out, const struct spec *s, u64 value,
                       u32 base, const char *prefix)
{
    char buf[DIGITS_MAX];
    char *first = digits(buf + sizeof(buf), value, base, s->letter == 'X');
    int n = buf + sizeof(buf) - first;
    int prefix_len = strlen(prefix);
    // Leading zeros: up to the precision, 1 if none is given; octal's alternate
    // form makes the first digit a zero.
    int zeros = (s->precision < 0 ? 1 : s->precision) - n;
    if (s->letter == 'o' && s->alternate && zeros <= 0)
        zeros = 1;
    zeros = MAX(zeros, 0);
    int pad = s->width - n - prefix_len;
    if (s->zero && !s->left && s->precision < 0)
        zeros = MAX(zeros, pad);
    pad -= zeros;

    if (!s->left)
        put_repeated(out, ' ', pad);
    put(out, prefix, prefix_len);
    put_repeated(out, '0', zeros);
    put(out, first, n);
    if (s->left)
        put_repeated(out, ' ', pad);
}

// An integer argument: sizes below int are passed as int and truncated here.
static u64 take_unsigned(va_list *args, size_t size)
{
    assert_checked(size == 1 || size == 2 || size == 4 || size == 8);
    if (size == sizeof(u64))
        return va_arg(*args, u64);
    u32 v = va_arg(*args, u32);
    return size == 1 ? (u8)v : size == 2 ? (u16)v : v;
}

static s64 take_signed(va_list *args, size_t size)
{
    assert_checked(size == 1 || size == 2 || size == 4 || size == 8);
    if (size == sizeof(s64))
        return va_arg(*args, s64);
    s32 v = va_arg(*args, s32);
    return size == 1 ? (s8)v : size == 2 ? (s16)v : v;
}

static void put_signed(struct output *out, const struct spec *s, s64 v)
{
    const char *sign = v < 0 ? "-" : s->plus ? "+" : s->space ? " " : "";
    put_number(out, s, v < 0 ? -(u64)v : (u64)v, 10, sign);
}

static void put_string(struct output *out, const struct spec *s,
                       const char *text)
{
    if (!text)
        text = "(null)";
    put_padded(out, s, text,
               s->precision < 0 ? strlen(text) : strnlen(text, s->precision));
}

static void put_spec(struct output *out, const struct spec *s, va_list *args)
{
    u64 v;
    char c;
    switch (s->letter) {
    case 'd':
    case 'i':
        put_signed(out, s, take_signed(args, s->size));
        break;
    case 'u':
        put_number(out, s, take_unsigned(args, s->size), 10, "");
        break;
    case 'o':
        put_number(out, s, take_unsigned(args, s->size), 8, "");
        break;
    case 'x':
    case 'X':
        v = take_unsigned(args, s->size);
        put_number(out, s, v, 16,
                   !s->alternate || v == 0 ? ""
                   : s->letter == 'x'      ? "0x"
                                           : "0X");
        break;
    case 'p':
        put_number(out, s, (uintptr_t)va_arg(*args, void *), 16, "0x");
        break;
    case 'c':
        c = (char)va_arg(*args, int);
        put_padded(out, s, &c, 1);
        break;
    case 's':
        put_string(out, s, va_arg(*args, const char *));
        break;
    }
}

static const char *parse_flags(const char *p, struct spec *s)
{
    for (;; p++) {
        switch (*p) {
        case '-':
            s->left = true;
            break;
        case '0':
            s->zero = true;
            break;
        case '+':
            s->plus = true;
            break;
        case ' ':
            s->space = true;
            break;
        case '#':
            s->alternate = true;
            break;
        default:
            return p;
        }
    }
}

// A decimal number, or `*`: the next argument.
static const char *parse_number(const char *p, int *out, va_list *args)
{
    if (*p == '*') {
        *out = va_arg(*args, int);
        return p + 1;
    }
    for (*out = 0; *p >= '0' && *p <= '9'; p++)
        *out = MIN(*out * 10 + (*p - '0'), NUMBER_MAX);
    return p;
}

static const char *parse_size(const char *p, struct spec *s)
{
    s->size = sizeof(int);
    switch (*p) {
    case 'h':
        s->size = p[1] == 'h' ? sizeof(char) : sizeof(short);
        return p + (p[1] == 'h' ? 2 : 1);
    case 'l':
        s->size = p[1] == 'l' ? sizeof(long long) : sizeof(long);
        return p + (p[1] == 'l' ? 2 : 1);
    case 'z':
        s->size = sizeof(size_t);
        return p + 1;
    default:
        return p;
    }
}

static const char *parse_spec(const char *p, struct spec *s, va_list *args)
{
    *s = (struct spec){ .precision = -1 };
    p = parse_number(parse_flags(p, s), &s->width, args);
    if (s->width < 0) { // `*` with a negative argument: left-justified
        s->left = true;
        s->width = s->width == INT32_MIN ? 0 : -s->width;
    }
    if (*p == '.')
        p = parse_number(p + 1, &s->precision, args);
    p = parse_size(p, s);
    s->letter = *p;
    return p;
}

int format_va(char *buf, size_t size, const char *fmt, va_list args)
{
    struct output out = { buf, size > 0 ? size - 1 : 0, 0 };
    va_list rest; // a parameter of type va_list may have decayed to a pointer
    va_copy(rest, args);

    while (*fmt != '\0') {
        const char *start = fmt;
        while (*fmt != '\0' && *fmt != '%')
            fmt++;
        put(&out, start, fmt - start);
        if (*fmt == '\0')
            break;

        start = fmt++;
        struct spec s;
        fmt = parse_spec(fmt, &s, &rest);
        if (*fmt != '\0' && strchr("diuoxXpcs", *fmt))
            put_spec(&out, &s, &rest);
        else if (*fmt == '%')
            put(&out, "%", 1);
        else // unknown: printed unchanged
            put(&out, start, fmt - start + (*fmt != '\0'));
        if (*fmt != '\0')
            fmt++;
    }

    va_end(rest);
    if (size > 0)
        buf[MIN(out.len, out.room)] = '\0';
    return (int)out.len;
}

int format(char *buf, size_t size, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = format_va(buf, size, fmt, args);
    va_end(args);
    return n;
}
