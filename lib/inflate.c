// The deflate format (RFC 1951): blocks of Huffman codes for bytes and for
// copies of earlier output.
#include "lib/inflate.h"

#include "lib/assert.h"

#define CODE_BITS_MAX 15u
#define LITERALS 288u // bytes, the end of a block, lengths of copies
#define DISTANCES 32u
#define END_OF_BLOCK 256u
#define LONGEST_COPY 258u

struct input {
    const u8 *at, *end;
    u32 bits, count; // bits read and not yet taken
    bool bad;        // set by a read beyond the end, and by invalid contents
};

struct output {
    u8 *bytes;
    size_t done, size;
};

static u32 take(struct input *in, u32 n)
{
    assert_checked(n <= 16);
    for (; in->count < n; in->count += 8) {
        if (in->at == in->end) {
            in->bad = true;
            return 0;
        }
        in->bits |= (u32)*in->at++ << in->count;
    }
    u32 value = in->bits & ((1u << n) - 1);
    in->bits >>= n;
    in->count -= n;
    return value;
}

// --- Huffman codes (3.2.2) --------------------------------------------------

struct code {
    u16 count[CODE_BITS_MAX + 1]; // of symbols with a code of so many bits
    u16 symbol[LITERALS];         // in the order of their codes
};

// Makes the canonical code of these lengths. False: no code has them.
static bool make_code(struct code *c, const u8 *lengths, u32 symbols)
{
    u16 next[CODE_BITS_MAX + 1] = { 0 };
    s32 left = 1;
    *c = (struct code){ 0 };
    for (u32 i = 0; i < symbols; i++)
        c->count[lengths[i]]++;
    c->count[0] = 0;
    for (u32 bits = 1; bits <= CODE_BITS_MAX && left >= 0; bits++) {
        left = 2 * left - c->count[bits];
        next[bits] = next[bits - 1] + c->count[bits - 1];
    }
    for (u32 i = 0; i < symbols; i++) {
        if (lengths[i])
            c->symbol[next[lengths[i]]++] = (u16)i;
    }
    return left >= 0;
}

static u32 take_symbol(struct input *in, const struct code *c)
{
    u32 code = 0, first = 0, index = 0;
    for (u32 bits = 1; bits <= CODE_BITS_MAX && !in->bad; bits++) {
        code = code << 1 | take(in, 1);
        first <<= 1;
        if (code - first < c->count[bits])
            return c->symbol[index + code - first];
        index += c->count[bits];
        first += c->count[bits];
    }
    in->bad = true;
    return 0;
}

// --- blocks (3.2.3 to 3.2.7) ------------------------------------------------

static void put(struct input *in, struct output *out, u32 byte)
{
    if (out->done == out->size)
        in->bad = true;
    else
        out->bytes[out->done++] = (u8)byte;
}

static u32 take_length(struct input *in, u32 n)
{
    u32 extra = n < 8 ? 0 : n / 4 - 1;
    if (n == 28)
        return LONGEST_COPY;
    return 3 + (n < 8 ? n : (4 + n % 4) << extra) + take(in, extra);
}

static u32 take_distance(struct input *in, u32 n)
{
    u32 extra = n < 4 ? 0 : n / 2 - 1;
    return 1 + (n < 4 ? n : (2 + n % 2) << extra) + take(in, extra);
}

static void copy_earlier(struct input *in, struct output *out, u32 length,
                         u32 distance)
{
    if (distance > out->done)
        in->bad = true;
    while (!in->bad && length--)
        put(in, out, out->bytes[out->done - distance]);
}

static void take_coded(struct input *in, struct output *out,
                       const struct code *literals,
                       const struct code *distances)
{
    while (!in->bad) {
        u32 symbol = take_symbol(in, literals);
        if (symbol == END_OF_BLOCK)
            return;
        if (symbol < END_OF_BLOCK) {
            put(in, out, symbol);
            continue;
        }
        u32 n = symbol - END_OF_BLOCK - 1;
        in->bad |= n > 28;
        u32 length = in->bad ? 0 : take_length(in, n);
        n = take_symbol(in, distances);
        in->bad |= n > 29;
        if (!in->bad)
            copy_earlier(in, out, length, take_distance(in, n));
    }
}

static void take_stored(struct input *in, struct output *out)
{
    take(in, in->count % 8);
    u32 size = take(in, 16);
    in->bad |= take(in, 16) != (~size & 0xffff);
    while (!in->bad && size--)
        put(in, out, take(in, 8));
}

static void take_fixed(struct input *in, struct output *out)
{
    u8 lengths[LITERALS];
    struct code literals, distances;
    for (u32 i = 0; i < LITERALS; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    make_code(&literals, lengths, LITERALS);
    for (u32 i = 0; i < DISTANCES; i++)
        lengths[i] = 5;
    make_code(&distances, lengths, DISTANCES);
    take_coded(in, out, &literals, &distances);
}

// Reads code lengths: themselves coded, with repetitions.
static void take_lengths(struct input *in, const struct code *code, u8 *out,
                         u32 count)
{
    u32 n = 0;
    while (n < count && !in->bad) {
        u32 symbol = take_symbol(in, code), times = 1;
        u8 length = (u8)symbol;
        if (symbol == 16) {
            in->bad |= n == 0;
            length = n ? out[n - 1] : 0;
            times = 3 + take(in, 2);
        } else if (symbol > 16) {
            length = 0;
            times = symbol == 17 ? 3 + take(in, 3) : 11 + take(in, 7);
        }
        in->bad |= times > count - n;
        while (!in->bad && times--)
            out[n++] = length;
    }
}

static void take_dynamic(struct input *in, struct output *out)
{
    static const u8 order[] = { 16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                11, 4,  12, 3, 13, 2, 14, 1, 15 };
    u8 lengths[LITERALS + DISTANCES] = { 0 };
    struct code literals, distances;
    u32 of_literals = 257 + take(in, 5), of_distances = 1 + take(in, 5);
    u32 of_lengths = 4 + take(in, 4);
    for (u32 i = 0; i < of_lengths; i++)
        lengths[order[i]] = (u8)take(in, 3);
    in->bad |= of_literals > LITERALS - 2 ||
               !make_code(&literals, lengths, ARRAY_SIZE(order));
    if (!in->bad)
        take_lengths(in, &literals, lengths, of_literals + of_distances);
    if (!in->bad && make_code(&literals, lengths, of_literals) &&
        make_code(&distances, lengths + of_literals, of_distances))
        take_coded(in, out, &literals, &distances);
    else
        in->bad = true;
}

// --- streams ----------------------------------------------------------------

#define ADLER_BASE 65521u // RFC 1950, 8.2

static u32 adler32(const struct output *out)
{
    u32 a = 1, b = 0;
    for (size_t i = 0; i < out->done; i++) {
        a = (a + out->bytes[i]) % ADLER_BASE;
        b = (b + a) % ADLER_BASE;
    }
    return b << 16 | a;
}

static u32 take_big_endian(struct input *in)
{
    u32 value = 0;
    for (u32 i = 0; i < 4; i++)
        value = value << 8 | take(in, 8);
    return value;
}

bool inflate(const void *stream, size_t bytes, u8 *out, size_t size)
{
    const u8 *at = stream;
    struct input in = { .at = at, .end = at + bytes };
    struct output o = { .bytes = out, .size = size };
    u32 how = take(&in, 8), flags = take(&in, 8), last = 0;
    // Method 8: deflate. Flag 20h: a preset dictionary.
    in.bad |= (how & 0xf) != 8 || (how << 8 | flags) % 31 || flags & 0x20;
    while (!in.bad && !last) {
        last = take(&in, 1);
        switch (take(&in, 2)) {
        case 0:
            take_stored(&in, &o);
            break;
        case 1:
            take_fixed(&in, &o);
            break;
        case 2:
            take_dynamic(&in, &o);
            break;
        default:
            in.bad = true;
        }
    }
    take(&in, in.count % 8);
    return !in.bad && o.done == o.size && take_big_endian(&in) == adler32(&o) &&
           !in.bad;
}
