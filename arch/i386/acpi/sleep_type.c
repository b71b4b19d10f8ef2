// Finds \_S5 in a definition block, without an AML interpreter.
//
// The firmware defines it as Name (\_S5, Package () {a, b, ...}) (ACPI 6.4,
// 7.4.2), encoded as NameOp, the name, PackageOp, PkgLength, NumElements, and
// the elements (20.2). The name's four bytes may occur elsewhere, so whatever
// does not have exactly this form is passed over, and the search goes on.
#include "arch/i386/acpi/sleep_type.h"
#include "lib/string.h"

enum { // ACPI 6.4, 20.2
    AML_ZERO = 0x00,
    AML_ONE = 0x01,
    AML_NAME = 0x08,
    AML_BYTE = 0x0a,
    AML_WORD = 0x0b,
    AML_DWORD = 0x0c,
    AML_QWORD = 0x0e,
    AML_PACKAGE = 0x12,
    AML_ROOT = '\\',
};

#define NAME_BYTES 4u

struct aml {
    const u8 *at, *end;
};

static u32 left(const struct aml *aml)
{
    return (u32)(aml->end - aml->at);
}

// A little-endian number; false: it extends beyond the end.
static bool read_bytes(struct aml *aml, u32 bytes, u64 *value)
{
    if (left(aml) < bytes)
        return false;
    *value = 0;
    memcpy(value, aml->at, bytes);
    aml->at += bytes;
    return true;
}

// ComputationalData, as far as it is an integer constant (20.2.3).
static bool read_integer(struct aml *aml, u64 *value)
{
    if (!left(aml))
        return false;
    switch (*aml->at++) {
    case AML_ZERO:
        *value = 0;
        return true;
    case AML_ONE:
        *value = 1;
        return true;
    case AML_BYTE:
        return read_bytes(aml, 1, value);
    case AML_WORD:
        return read_bytes(aml, 2, value);
    case AML_DWORD:
        return read_bytes(aml, 4, value);
    case AML_QWORD:
        return read_bytes(aml, 8, value);
    default:
        return false;
    }
}

// PkgLength (20.2.4), which counts its own bytes; the block is cut to it.
static bool enter_package(struct aml *aml)
{
    const u8 *start = aml->at;
    if (!left(aml))
        return false;
    u32 lead = *aml->at++, more = lead >> 6;
    u64 high = 0;
    if (more && (lead & 0x30 || !read_bytes(aml, more, &high)))
        return false;
    u32 length = more ? (lead & 0xf) | (u32)high << 4 : lead & 0x3f;
    if (length < 1 + more || length > (u32)(aml->end - start))
        return false;
    aml->end = start + length;
    return true;
}

// Two elements; or one, whose second byte is for PM1b, as some firmware has it.
static bool read_types(struct aml *aml, u64 *a, u64 *b)
{
    u64 elements;
    if (!read_bytes(aml, 1, &elements) || !elements || !read_integer(aml, a))
        return false;
    if (elements >= 2)
        return read_integer(aml, b);
    *b = *a >> 8;
    *a &= 0xff;
    return true;
}

// `aml` begins with the name.
static bool read_object(struct aml aml, struct sleep_type *out)
{
    u64 a, b;
    aml.at += NAME_BYTES;
    if (!left(&aml) || *aml.at++ != AML_PACKAGE || !enter_package(&aml) ||
        !read_types(&aml, &a, &b) || a > SLEEP_TYPE_MAX || b > SLEEP_TYPE_MAX)
        return false;
    *out = (struct sleep_type){ true, (u8)a, (u8)b };
    return true;
}

static bool is_named(const u8 *start, const u8 *name)
{
    if (name > start && name[-1] == AML_ROOT)
        name--;
    return name > start && name[-1] == AML_NAME;
}

bool sleep_type_find(const u8 *aml, u32 size, struct sleep_type *out)
{
    for (u32 i = 0; i + NAME_BYTES <= size; i++) {
        if (!memcmp(aml + i, "_S5_", NAME_BYTES) && is_named(aml, aml + i) &&
            read_object((struct aml){ aml + i, aml + size }, out))
            return true;
    }
    return false;
}
