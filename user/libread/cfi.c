#include "user/libread/cfi.h"

#include "lib/assert.h"
#include "lib/string.h"
#include "user/libread/sort.h"

// Register numbers (i386 psABI, table 2.14).
#define REGISTER_ESP 4
#define REGISTER_EBP 5
#define REGISTER_RETURN 8

// Pointer encodings of .eh_frame.
#define PE_ABSOLUTE 0x00
#define PE_UDATA4 0x03
#define PE_SDATA4 0x0b
#define PE_PC_RELATIVE 0x10
#define PE_FORM 0x0f

// In expressions: the word at an address, a register plus a number.
#define OP_DEREF 0x06
#define OP_BREG0 0x70

#define REMEMBERED_MAX 8

// --- reading within bounds --------------------------------------------------

struct reader {
    const u8 *at, *end;
    bool bad; // set by a read beyond the end: later values are 0
};

static u32 take(struct reader *r, u32 bytes)
{
    u32 value = 0;
    if (r->bad || bytes > (size_t)(r->end - r->at)) {
        r->bad = true;
        return 0;
    }
    for (u32 i = 0; i < bytes; i++)
        value |= (u32)r->at[i] << 8 * i;
    r->at += bytes;
    return value;
}

static u32 take_byte(struct reader *r)
{
    if (r->bad || r->at == r->end) {
        r->bad = true;
        return 0;
    }
    return *r->at++;
}

static u32 take_leb(struct reader *r, bool is_signed)
{
    u32 value = 0, shift = 0, byte;
    do {
        byte = take_byte(r);
        if (shift < 32)
            value |= (byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (is_signed && byte & 0x40 && shift < 32)
        value |= ~0u << shift;
    return value;
}

static u32 take_unsigned(struct reader *r)
{
    return take_leb(r, false);
}

static s32 take_signed(struct reader *r)
{
    return (s32)take_leb(r, true);
}

static void skip(struct reader *r, u32 bytes)
{
    if (r->bad || bytes > (size_t)(r->end - r->at))
        r->bad = true;
    else
        r->at += bytes;
}

// --- entries ----------------------------------------------------------------

struct cie {
    u32 code_factor;
    s32 data_factor;
    u32 encoding;      // of the addresses in FDEs
    bool augmentation; // FDEs have augmentation data, with its length
    struct reader program;
};

// Reads a block's length and sets *out to its bytes. False at the section's
// end.
static bool next_block(const struct cfi_section *s, u32 *offset,
                       struct reader *out)
{
    assert_checked(*offset < s->size);
    struct reader r = { s->bytes + *offset, s->bytes + s->size, false };
    u32 length = take(&r, 4);
    if (r.bad || !length || length > (size_t)(r.end - r.at))
        return false; // also the 64-bit escape, 0xffffffff
    *out = (struct reader){ r.at, r.at + length, false };
    *offset += 4 + length;
    return true;
}

static bool augment(struct reader *r, const u8 *letters, struct cie *out)
{
    if (!*letters)
        return true;
    if (*letters != 'z')
        return false;
    out->augmentation = true;
    u32 length = take_unsigned(r);
    struct reader data = *r;
    skip(r, length);
    if (r->bad)
        return false;
    data.end = r->at;
    while (*++letters) {
        if (*letters == 'R')
            out->encoding = take(&data, 1);
        else if (*letters == 'L')
            take(&data, 1);
        else if (*letters == 'P')
            skip(&data, 1 + 4); // an encoding, a pointer
        else if (*letters != 'S')
            return false;
    }
    u32 form = out->encoding & PE_FORM, how = out->encoding & ~(u32)PE_FORM;
    return !data.bad && (how == 0 || how == PE_PC_RELATIVE) &&
           (form == PE_ABSOLUTE || form == PE_UDATA4 || form == PE_SDATA4);
}

static bool read_cie(const struct cfi_section *s, u32 offset, struct cie *out)
{
    struct reader r;
    *out = (struct cie){ .encoding = PE_ABSOLUTE };
    if (offset >= s->size || !next_block(s, &offset, &r) ||
        take(&r, 4) != (s->eh ? 0u : 0xffffffffu))
        return false;
    u32 version = take(&r, 1);
    const u8 *letters = r.at;
    while (take_byte(&r))
        ;
    if (r.bad || (version != 1 && version != 3 && version != 4))
        return false;
    if (version == 4)
        skip(&r, 2); // sizes of addresses and segments
    out->code_factor = take_unsigned(&r);
    out->data_factor = take_signed(&r);
    u32 back = version == 1 ? take(&r, 1) : take_unsigned(&r);
    if (r.bad || back != REGISTER_RETURN || !augment(&r, letters, out))
        return false;
    out->program = r;
    return true;
}

static u32 take_address(const struct cfi_section *s, struct reader *r,
                        u32 encoding)
{
    u32 here = s->address + (u32)(r->at - s->bytes);
    u32 value = take(r, 4);
    return encoding & PE_PC_RELATIVE ? here + value : value;
}

// Reads the FDE in `r`. False if it is a CIE, has an unsupported CIE, or
// belongs to a function that the linker has dropped: its address is 0.
static bool read_fde(const struct cfi_section *s, struct reader *r,
                     struct cie *cie, u32 *start, u32 *end)
{
    u32 here = (u32)(r->at - s->bytes), id = take(r, 4);
    if (id == (s->eh ? 0u : 0xffffffffu))
        return false;
    if (!read_cie(s, s->eh ? here - id : id, cie))
        return false;
    *start = take_address(s, r, cie->encoding);
    *end = *start + take(r, 4);
    if (cie->augmentation)
        skip(r, take_unsigned(r));
    return !r->bad && *start && *end > *start;
}

u32 cfi_entries(const struct cfi_section *s, u32 section, struct cfi_entry *out,
                u32 max)
{
    u32 offset = 0, n = 0;
    for (;;) {
        struct cfi_entry e = { .offset = offset, .section = section };
        struct reader r;
        struct cie cie;
        if (offset >= s->size || !next_block(s, &offset, &r))
            return n;
        if (!read_fde(s, &r, &cie, &e.start, &e.end))
            continue;
        if (n < max)
            out[n] = e;
        n++;
    }
}

static bool starts_before(const void *a, const void *b)
{
    const struct cfi_entry *x = a, *y = b;
    return x->start < y->start;
}

u32 cfi_sort(struct cfi_entry *e, u32 count)
{
    sort(e, count, sizeof(*e), starts_before);
    u32 kept = 0;
    for (u32 i = 0; i < count; i++) {
        if (!kept || e[i].start >= e[kept - 1].end)
            e[kept++] = e[i];
    }
    return kept;
}

const struct cfi_entry *cfi_find(const struct cfi_entry *e, u32 count, u32 pc)
{
    u32 low = 0, high = count;
    while (low < high) {
        u32 middle = low + (high - low) / 2;
        if (e[middle].start <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low && pc < e[low - 1].end ? &e[low - 1] : NULL;
}

// --- the table that an entry's program describes ----------------------------

// A row, and which of its parts have a rule that a row cannot represent.
struct rules {
    struct cfi_row row;
    bool cfa_unknown, return_unknown;
};

struct state {
    struct rules now, initial, remembered[REMEMBERED_MAX];
    u32 depth, pc;
    u32 reached; // the highest address so far that is <= pc
};

static s32 factored(u32 value, const struct cie *cie)
{
    return (s32)(value * (u32)cie->data_factor);
}

static void define_cfa(struct rules *now, u32 reg, s32 offset)
{
    now->cfa_unknown = reg != REGISTER_ESP && reg != REGISTER_EBP;
    now->row.by_ebp = reg == REGISTER_EBP;
    now->row.cfa_loaded = false;
    now->row.cfa_offset = offset;
}

static void save(struct rules *now, u32 reg, s32 offset)
{
    if (reg == REGISTER_EBP) {
        now->row.ebp_saved = true;
        now->row.ebp_in_frame = false;
        now->row.ebp_offset = offset;
    } else if (reg == REGISTER_RETURN) {
        now->return_unknown = offset != -4;
    }
}

static void restore(struct state *st, u32 reg)
{
    if (reg != REGISTER_EBP)
        return;
    st->now.row.ebp_saved = st->initial.row.ebp_saved;
    st->now.row.ebp_in_frame = st->initial.row.ebp_in_frame;
    st->now.row.ebp_offset = st->initial.row.ebp_offset;
}

// The register has its value on entry, or (`unknown`) an unsupported rule.
static void forget(struct rules *now, u32 reg, bool unknown)
{
    if (reg == REGISTER_EBP)
        now->row.ebp_saved = false;
    else if (reg == REGISTER_RETURN)
        now->return_unknown = unknown;
}

static bool push(struct state *st)
{
    if (st->depth == REMEMBERED_MAX)
        return false;
    st->remembered[st->depth++] = st->now;
    return true;
}

static bool pop(struct state *st)
{
    if (!st->depth)
        return false;
    st->now = st->remembered[--st->depth];
    return true;
}

// Reads an expression. True: it is ebp plus *offset, or (`*loaded`) the word
// there.
static bool ebp_expression(struct reader *r, s32 *offset, bool *loaded)
{
    u32 size = take_unsigned(r);
    struct reader e = *r;
    skip(r, size);
    e.end = r->at;
    bool by_ebp = take_byte(&e) == OP_BREG0 + REGISTER_EBP;
    *offset = take_signed(&e);
    *loaded = e.at < e.end && take_byte(&e) == OP_DEREF;
    return by_ebp && !r->bad && !e.bad && e.at == e.end;
}

// A function that realigns its stack saves its CFA in its frame.
static void cfa_by_expression(struct rules *now, struct reader *r)
{
    s32 offset;
    bool loaded;
    bool known = ebp_expression(r, &offset, &loaded);
    define_cfa(now, known ? REGISTER_EBP : REGISTER_RETURN, offset);
    now->row.cfa_loaded = loaded;
}

// op 0x10: the register is saved at the expression's address; 0x16: it is its
// value.
static void by_expression(struct rules *now, struct reader *r, u32 op)
{
    u32 reg = take_unsigned(r);
    s32 offset;
    bool loaded, known = ebp_expression(r, &offset, &loaded);
    if (reg == REGISTER_EBP && known && loaded == (op == 0x16)) {
        save(now, reg, offset);
        now->row.ebp_in_frame = true;
    } else {
        forget(now, reg, true);
    }
}

// An instruction that uses all bits of its first byte (DWARF 4, figure 40).
static bool extended(struct state *st, struct reader *r, u32 op,
                     const struct cie *cie, const struct cfi_section *s)
{
    struct rules *now = &st->now;
    u32 reg;
    switch (op) {
    case 0x00: // nop
        return true;
    case 0x01: // set_loc
        st->pc = take_address(s, r, cie->encoding);
        return true;
    case 0x02: // advance_loc1, 2, 4
    case 0x03:
    case 0x04:
        st->pc += take(r, 1u << (op - 2)) * cie->code_factor;
        return true;
    case 0x05: // offset_extended
        reg = take_unsigned(r);
        save(now, reg, factored(take_unsigned(r), cie));
        return true;
    case 0x06: // restore_extended
        restore(st, take_unsigned(r));
        return true;
    case 0x07: // undefined
    case 0x08: // same_value
        forget(now, take_unsigned(r), op == 0x07);
        return true;
    case 0x09: // register
        reg = take_unsigned(r);
        take_unsigned(r);
        forget(now, reg, true);
        return true;
    case 0x0a: // remember_state
        return push(st);
    case 0x0b: // restore_state
        return pop(st);
    case 0x0c: // def_cfa
        reg = take_unsigned(r);
        define_cfa(now, reg, (s32)take_unsigned(r));
        return true;
    case 0x0d: // def_cfa_register
        define_cfa(now, take_unsigned(r), now->row.cfa_offset);
        return true;
    case 0x0e: // def_cfa_offset
        now->row.cfa_offset = (s32)take_unsigned(r);
        return true;
    case 0x0f: // def_cfa_expression
        cfa_by_expression(now, r);
        return true;
    case 0x10: // expression
    case 0x16: // val_expression
        by_expression(now, r, op);
        return true;
    case 0x11: // offset_extended_sf
        reg = take_unsigned(r);
        save(now, reg, factored(take_leb(r, true), cie));
        return true;
    case 0x12: // def_cfa_sf
        reg = take_unsigned(r);
        define_cfa(now, reg, factored(take_leb(r, true), cie));
        return true;
    case 0x13: // def_cfa_offset_sf
        now->row.cfa_offset = factored(take_leb(r, true), cie);
        return true;
    case 0x2e: // GNU_args_size
        take_unsigned(r);
        return true;
    }
    return false;
}

// Runs until the row of `pc` is complete. False: the program is invalid.
static bool run(struct state *st, struct reader r, u32 pc,
                const struct cie *cie, const struct cfi_section *s)
{
    while (r.at < r.end && !r.bad && st->pc <= pc) {
        u32 byte = take_byte(&r), low = byte & 0x3f;
        st->reached = MAX(st->reached, st->pc);
        if (byte >> 6 == 1) // advance_loc
            st->pc += low * cie->code_factor;
        else if (byte >> 6 == 2) // offset
            save(&st->now, low, factored(take_unsigned(&r), cie));
        else if (byte >> 6 == 3)
            restore(st, low);
        else if (!extended(st, &r, low, cie, s))
            return false;
    }
    return !r.bad;
}

bool cfi_row_at(const struct cfi_section *s, const struct cfi_entry *entry,
                u32 pc, struct cfi_row *out)
{
    u32 offset = entry->offset, start, end;
    struct reader r;
    struct cie cie;
    assert(pc >= entry->start && pc < entry->end);
    *out = (struct cfi_row){ .start = entry->start, .end = entry->end };
    if (offset >= s->size || !next_block(s, &offset, &r) ||
        !read_fde(s, &r, &cie, &start, &end) || pc < start || pc >= end)
        return false;
    struct state st = { .pc = 0 };
    if (!run(&st, cie.program, ~0u, &cie, s))
        return false;
    st.initial = st.now;
    st.pc = st.reached = start;
    bool known = run(&st, r, pc, &cie, s);
    // Any address from `reached` up to the one that ended the run executes the
    // same instructions, in whichever order they describe the function.
    out->start = st.reached;
    if (st.pc > pc)
        out->end = MIN(st.pc, end);
    if (!known || st.now.cfa_unknown || st.now.return_unknown)
        return false;
    st.now.row.start = out->start;
    st.now.row.end = out->end;
    *out = st.now.row;
    return true;
}
