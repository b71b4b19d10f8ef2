#include "arch/i386/dev/serial_name.h"

#include "lib/string.h"

#define PORT_MAX 0xfff8u // of the first of 8 registers

// A number of `*text`, behind which that points then. False: there is none, or
// it is greater than `most`.
static bool take_number(const char **text, u32 base, u32 most, u32 *out)
{
    const char *s = *text;
    u32 n = 0;
    for (;; s++) {
        u32 digit = *s >= '0' && *s <= '9'   ? (u32)(*s - '0')
                    : *s >= 'a' && *s <= 'f' ? (u32)(*s - 'a') + 10
                                             : base;
        if (digit >= base)
            break;
        n = n * base + digit;
        if (n > most)
            return false;
    }
    bool any = s != *text;
    *text = s;
    *out = n;
    return any;
}

bool serial_name_parse(const char *text, struct spcr_port *out)
{
    static const struct {
        u16 port;
        u8 irq;
    } usual[] = { { 0x3f8, 4 }, { 0x2f8, 3 }, { 0x3e8, 4 }, { 0x2e8, 3 } };
    u32 n, port = 0, rate = SERIAL_RATE_MAX;
    if (!strncmp(text, "ttyS", 4)) {
        text += 4;
        if (take_number(&text, 10, ARRAY_SIZE(usual) - 1, &n))
            port = usual[n].port;
    } else if (!strncmp(text, "0x", 2)) {
        text += 2;
        if (take_number(&text, 16, PORT_MAX, &n))
            port = n;
    }
    if (!port)
        return false;
    if (*text == ',') {
        text++;
        if (!take_number(&text, 10, SERIAL_RATE_MAX, &rate) || !rate)
            return false;
    }
    if (*text || SERIAL_RATE_MAX / rate > UINT16_MAX)
        return false;
    *out = (struct spcr_port){ .port = (u16)port,
                               .rate = rate,
                               .divisor = (u16)(SERIAL_RATE_MAX / rate) };
    for (u32 i = 0; i < ARRAY_SIZE(usual); i++) {
        if (usual[i].port == port)
            out->irq = usual[i].irq;
    }
    return true;
}
