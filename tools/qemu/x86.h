// What the plugins must know of an instruction of 32-bit x86 (Intel SDM volume
// 2, appendix A).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum x86_kind { X86_OTHER, X86_CALL, X86_RET, X86_IRET, X86_HLT, X86_RDTSC };

// The opcode after the prefixes, in 0x00-0xff or 0x0f00-0x0fff, and the ModRM
// byte behind it (0 if there is none).
struct x86_opcode {
    unsigned op;
    uint8_t modrm;
};

// Returns the number of prefixes (SDM volume 2, 2.1.1).
static inline size_t x86_prefixes(const uint8_t *at, size_t size)
{
    static const uint8_t prefixes[] = { 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65,
                                        0x66, 0x67, 0xf0, 0xf2, 0xf3 };
    size_t count = 0, j = 0;
    while (count < size && j < sizeof(prefixes)) {
        for (j = 0; j < sizeof(prefixes) && at[count] != prefixes[j]; j++)
            ;
        count += j < sizeof(prefixes);
    }
    return count;
}

static inline struct x86_opcode x86_opcode(const uint8_t *at, size_t size)
{
    struct x86_opcode o = { 0x90, 0 };
    size_t i = x86_prefixes(at, size);
    if (i < size)
        o.op = at[i++];
    if (o.op == 0x0f && i < size)
        o.op = 0x0f00u | at[i++];
    if (i < size)
        o.modrm = at[i];
    return o;
}

static inline bool x86_in_memory(struct x86_opcode o)
{
    return o.modrm < 0xc0;
}

static inline unsigned x86_digit(struct x86_opcode o)
{
    return o.modrm >> 3 & 7;
}

static inline enum x86_kind x86_kind(const uint8_t *at, size_t size)
{
    struct x86_opcode o = x86_opcode(at, size);
    switch (o.op) {
    case 0xe8:
    case 0x9a:
        return X86_CALL;
    case 0xff:
        return x86_digit(o) == 2 || x86_digit(o) == 3 ? X86_CALL : X86_OTHER;
    case 0xc2:
    case 0xc3:
    case 0xca:
    case 0xcb:
        return X86_RET;
    case 0xcf:
        return X86_IRET;
    case 0xf4:
        return X86_HLT;
    case 0x0f31:
        return X86_RDTSC;
    default:
        return X86_OTHER;
    }
}

// Whether the instruction is TEST EAX, `value`.
static inline bool x86_tests(const uint8_t *at, size_t size, uint32_t value)
{
    return size == 5 && at[0] == 0xa9 && at[1] == (value & 0xff) &&
           at[2] == (value >> 8 & 0xff) && at[3] == (value >> 16 & 0xff) &&
           at[4] == value >> 24;
}

static inline bool x86_two_may_fault(struct x86_opcode o)
{
    unsigned op = o.op & 0xff;
    if ((op & 0xf0) == 0x80 || (op & 0xf8) == 0xc8 || op == 0x1f || op == 0xa2)
        return false; // Jcc, BSWAP, NOP, CPUID
    if ((op & 0xf0) == 0x40 || (op & 0xf0) == 0x90)
        return x86_in_memory(o); // CMOVcc, SETcc
    switch (op) {
    case 0xa3: // BT and the like, SHLD, SHRD, IMUL, CMPXCHG, MOVZX, MOVSX, XADD
    case 0xa4:
    case 0xa5:
    case 0xab:
    case 0xac:
    case 0xad:
    case 0xaf:
    case 0xb0:
    case 0xb1:
    case 0xb3:
    case 0xb6:
    case 0xb7:
    case 0xba:
    case 0xbb:
    case 0xbc:
    case 0xbd:
    case 0xbe:
    case 0xbf:
    case 0xc0:
    case 0xc1:
        return x86_in_memory(o);
    default:
        return true;
    }
}

// Whether the instruction may access memory or raise an exception. True for all
// that are not known here.
static inline bool x86_may_fault(const uint8_t *at, size_t size)
{
    struct x86_opcode o = x86_opcode(at, size);
    unsigned op = o.op;
    if (op >= 0x0f00)
        return x86_two_may_fault(o);
    if (op < 0x40 && (op & 7) < 4)
        return x86_in_memory(o);
    if (op < 0x40 && (op & 7) < 6)
        return false;
    if ((op >= 0x40 && op < 0x50) || (op >= 0x70 && op < 0x80) ||
        (op >= 0x90 && op < 0x9a) || (op >= 0xb0 && op < 0xc0))
        return false;
    if ((op >= 0x80 && op <= 0x8c) || (op >= 0xd0 && op <= 0xd3))
        return x86_in_memory(o);
    switch (op) {
    case 0x27: // DAA, DAS, AAA, AAS
    case 0x2f:
    case 0x37:
    case 0x3f:
    case 0x8d: // LEA
    case 0x9e: // SAHF, LAHF
    case 0x9f:
    case 0xa8: // TEST
    case 0xa9:
    case 0xe0: // LOOP, JECXZ
    case 0xe1:
    case 0xe2:
    case 0xe3:
    case 0xe9: // JMP
    case 0xeb:
    case 0xf5: // flags
    case 0xf8:
    case 0xf9:
    case 0xfc:
    case 0xfd:
        return false;
    case 0x69: // IMUL, shifts, MOV, INC
    case 0x6b:
    case 0xc0:
    case 0xc1:
    case 0xc6:
    case 0xc7:
    case 0xfe:
        return x86_in_memory(o);
    case 0xf6:
    case 0xf7:
        return x86_in_memory(o) || x86_digit(o) >= 6; // DIV, IDIV
    case 0xff:
        return x86_in_memory(o) || (x86_digit(o) != 0 && x86_digit(o) != 1 &&
                                    x86_digit(o) != 4); // but INC, DEC, JMP
    default:
        return true;
    }
}

// Whether the instruction reads memory and then writes it.
static inline bool x86_modifies(const uint8_t *at, size_t size)
{
    struct x86_opcode o = x86_opcode(at, size);
    unsigned op = o.op, digit = x86_digit(o);
    if (op < 0x38)
        return (op & 7) < 2 && x86_in_memory(o);
    switch (op) {
    case 0x80:
    case 0x81:
    case 0x82:
    case 0x83:
        return digit != 7; // CMP
    case 0x86:             // XCHG
    case 0x87:
    case 0x8f: // POP
    case 0xa4: // MOVS
    case 0xa5:
    case 0xc0: // shifts
    case 0xc1:
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
    case 0xfe:   // INC, DEC
    case 0x0fa4: // SHLD, SHRD, BTS, CMPXCHG, BTR, BTC, XADD
    case 0x0fa5:
    case 0x0fab:
    case 0x0fac:
    case 0x0fad:
    case 0x0fb0:
    case 0x0fb1:
    case 0x0fb3:
    case 0x0fbb:
    case 0x0fc0:
    case 0x0fc1:
        return true;
    case 0xf6:
    case 0xf7:
        return digit == 2 || digit == 3; // NOT, NEG
    case 0xff:
        // INC, DEC, PUSH; CALL by a pointer
        return digit < 2 || digit == 6 || (digit == 2 && x86_in_memory(o));
    case 0x0fba:
        return digit > 4; // BTS, BTR, BTC
    default:
        return false;
    }
}

static inline bool x86_has_modrm(unsigned op)
{
    if (op >= 0x0f00) {
        op &= 0xff;
        return !((op & 0xf0) == 0x80 || (op & 0xf8) == 0xc8 ||
                 (op >= 0x30 && op <= 0x37) || (op >= 0x04 && op <= 0x0b) ||
                 op == 0x77 || op == 0xa0 || op == 0xa1 || op == 0xa2 ||
                 op == 0xa8 || op == 0xa9 || op == 0xaa);
    }
    if (op < 0x40)
        return (op & 7) < 4;
    return op == 0x62 || op == 0x63 || op == 0x69 || op == 0x6b ||
           (op >= 0x80 && op <= 0x8f) || op == 0xc0 || op == 0xc1 ||
           (op >= 0xc4 && op <= 0xc7) || (op >= 0xd0 && op <= 0xd3) ||
           (op >= 0xd8 && op <= 0xdf) || op == 0xf6 || op == 0xf7 || op >= 0xfe;
}

// Bytes of the immediate operand; `word` is 2 or 4, and so is `address`.
static inline size_t x86_immediate(struct x86_opcode o, size_t word,
                                   size_t address)
{
    unsigned op = o.op;
    if (op >= 0x0f00) {
        op &= 0xff;
        if ((op & 0xf0) == 0x80)
            return word;
        return op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 ||
               (op >= 0xc4 && op <= 0xc6) || (op >= 0x70 && op <= 0x73);
    }
    if (op < 0x40)
        return (op & 7) == 4 ? 1 : (op & 7) == 5 ? word : 0;
    if ((op >= 0x70 && op <= 0x80) || (op >= 0xb0 && op <= 0xb7) ||
        (op >= 0xe0 && op <= 0xe7))
        return 1;
    if (op >= 0xb8 && op <= 0xbf)
        return word;
    if (op >= 0xa0 && op <= 0xa3)
        return address;
    switch (op) {
    case 0x6a:
    case 0x6b:
    case 0x82:
    case 0x83:
    case 0xa8:
    case 0xc0:
    case 0xc1:
    case 0xc6:
    case 0xcd:
    case 0xd4:
    case 0xd5:
    case 0xeb:
        return 1;
    case 0xc2:
    case 0xca:
        return 2;
    case 0xc8:
        return 3;
    case 0x68:
    case 0x69:
    case 0x81:
    case 0xa9:
    case 0xc7:
    case 0xe8:
    case 0xe9:
        return word;
    case 0x9a:
    case 0xea:
        return word + 2;
    case 0xf6:
        return x86_digit(o) < 2;
    case 0xf7:
        return x86_digit(o) < 2 ? word : 0;
    default:
        return 0;
    }
}

// Whether these are all bytes of the instruction, in a 32-bit code segment.
static inline bool x86_is_complete(const uint8_t *at, size_t size)
{
    size_t i = x86_prefixes(at, size), word = 4, address = 4;
    for (size_t j = 0; j < i; j++) {
        word = at[j] == 0x66 ? 2 : word;
        address = at[j] == 0x67 ? 2 : address;
    }
    if (i == size)
        return false;
    struct x86_opcode o = { at[i++], 0 };
    if (o.op == 0x0f) {
        if (i == size)
            return false;
        o.op = 0x0f00u | at[i++];
        if (o.op == 0x0f38 || o.op == 0x0f3a) {
            size_t immediate = o.op == 0x0f3a;
            if (i++ == size)
                return false;
            o.op = immediate ? 0x0fc2 : 0x0f10; // of the same form
        }
    }
    if (x86_has_modrm(o.op)) {
        if (i == size)
            return false;
        o.modrm = at[i++];
        unsigned mod = o.modrm >> 6, rm = o.modrm & 7;
        if (mod != 3 && address == 4) {
            if (rm == 4) {
                if (i == size)
                    return false;
                rm = at[i++] & 7;
                if (mod == 0 && rm == 5)
                    i += 4;
            } else if (mod == 0 && rm == 5) {
                i += 4;
            }
            i += mod == 1 ? 1 : mod == 2 ? 4 : 0;
        } else if (mod != 3) {
            i += mod == 1 ? 1 : mod == 2 || rm == 6 ? 2 : 0;
        }
    }
    return i + x86_immediate(o, word, address) <= size;
}
