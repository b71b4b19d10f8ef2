#include "arch/i386/cpu/mca.h"

#include "lib/format.h"

// The fields of compound codes (SDM vol. 3B, tables 15-10 to 15-13).
static const char *const transactions[] = { "instruction", "data", "generic",
                                            "reserved" };
static const char *const requests[] = {
    "error",       "read",     "write", "data read", "data write",
    "instruction", "prefetch", "evict", "snoop",
};
static const char *const participations[] = { "this CPU asked",
                                              "this CPU answered",
                                              "this CPU looked on", "generic" };
static const char *const targets[] = { "memory", "reserved", "I/O", "other" };
static const char *const memory_requests[] = { "generic", "read", "write",
                                               "address or command", "scrub" };

#define LEVEL(code) ((code)&3)
#define TRANSACTION(code) ((code) >> 2 & 3)
#define REQUEST(code) ((code) >> 4 & 15)
#define BUS_TARGET(code) ((code) >> 2 & 3)
#define BUS_TIMEOUT 0x100u
#define PARTICIPATION(code) ((code) >> 9 & 3)
#define CHANNEL(code) ((code)&15)
#define CHANNEL_UNKNOWN 15u
#define MEMORY_REQUEST(code) ((code) >> 4 & 7)

#define FILTERED 0x1000u // bit 12 of a compound code: filtered corrections
#define INTERNAL_TIMER 0x400u
#define INTERNAL_MASK 0xfc00u // 0000 01xx xxxx xxxx

static const char *word(const char *const *words, u32 count, u32 i)
{
    return i < count ? words[i] : "reserved";
}
#define WORD(words, i) word(words, ARRAY_SIZE(words), i)

static const char *simple(u32 code)
{
    static const char *const kinds[] = {
        "no error",
        "unclassified",
        "parity of the microcode ROM",
        "external: another CPU asked for it",
        "two CPUs that check each other disagree",
        "internal parity",
        "SMM code outside of its memory",
    };
    if (code < ARRAY_SIZE(kinds))
        return kinds[code];
    if (code == INTERNAL_TIMER)
        return "internal timer";
    return (code & INTERNAL_MASK) == INTERNAL_TIMER ? "internal" : NULL;
}

static int describe_memory(u32 code, char *text, size_t size)
{
    const char *request = WORD(memory_requests, MEMORY_REQUEST(code));
    if (CHANNEL(code) == CHANNEL_UNKNOWN)
        return format(text, size, "memory controller: %s", request);
    return format(text, size, "memory controller, channel %u: %s",
                  CHANNEL(code), request);
}

static int describe_compound(u32 code, char *text, size_t size)
{
    const char *request = WORD(requests, REQUEST(code));
    if (code >> 11 == 1)
        return format(text, size, "bus, level %u: %s of %s, %s%s", LEVEL(code),
                      request, targets[BUS_TARGET(code)],
                      participations[PARTICIPATION(code)],
                      code & BUS_TIMEOUT ? ", timed out" : "");
    if (code >> 8 == 1)
        return format(text, size, "cache, level %u: %s, %s", LEVEL(code),
                      request, transactions[TRANSACTION(code)]);
    if (code >> 7 == 1 || code >> 7 == 5)
        return describe_memory(code, text, size);
    if (code >> 4 == 1)
        return format(text, size, "TLB, level %u: %s", LEVEL(code),
                      transactions[TRANSACTION(code)]);
    if (code >> 2 == 3)
        return format(text, size, "cache, level %u", LEVEL(code));
    return format(text, size, "code %#x, of this model of CPU", code);
}

int mca_describe_code(u32 code, char *text, size_t size)
{
    const char *kind = simple(code);
    if (kind)
        return format(text, size, "%s", kind);
    return describe_compound(code & ~FILTERED, text, size);
}

int mca_describe_flags(u64 status, char *text, size_t size)
{
    return format(text, size, "%scorrected%s%s%s%s",
                  status >> 61 & 1 ? "un" : "",
                  status >> 57 & 1 ? ", context corrupt" : "",
                  status >> 62 & 1 ? ", an earlier one is overwritten" : "",
                  status >> 60 & 1 ? "" : ", not enabled",
                  status >> 55 & 1 ? ", software must act" : "");
}
