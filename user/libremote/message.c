#include "user/libremote/message.h"

#include <stdio.h>
#include <string.h>

#define GROUP 4 // bytes of a key between two hyphens

void remote_head_make(void *datagram, enum remote_type type, uint64_t session)
{
    struct remote_head h = { .version = REMOTE_VERSION,
                             .type = (uint8_t)type,
                             .session = session };

    memcpy(h.magic, REMOTE_MAGIC, sizeof(h.magic));
    memcpy(datagram, &h, sizeof(h));
}

size_t remote_seal(const uint8_t key[SIPHASH_KEY], void *datagram, size_t size)
{
    uint64_t code = siphash(key, datagram, size);

    memcpy((uint8_t *)datagram + size, &code, REMOTE_CODE);
    return size + REMOTE_CODE;
}

size_t remote_check(const uint8_t key[SIPHASH_KEY], const void *datagram,
                    size_t size)
{
    const struct remote_head *h = datagram;
    uint64_t code;

    if (size < sizeof(*h) + REMOTE_CODE || size > REMOTE_DATAGRAM_MAX ||
        memcmp(h->magic, REMOTE_MAGIC, sizeof(h->magic)) != 0 ||
        h->version != REMOTE_VERSION)
        return 0;
    size -= REMOTE_CODE;
    code = siphash(key, datagram, size);
    return memcmp((const uint8_t *)datagram + size, &code, REMOTE_CODE) == 0
               ? size
               : 0;
}

void remote_key_print(char text[REMOTE_KEY_TEXT],
                      const uint8_t key[SIPHASH_KEY])
{
    for (int i = 0; i < SIPHASH_KEY; i++)
        text +=
            sprintf(text, "%s%02x", i > 0 && i % GROUP == 0 ? "-" : "", key[i]);
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool remote_key_parse(uint8_t key[SIPHASH_KEY], const char *text)
{
    int digits = 0;

    memset(key, 0, SIPHASH_KEY);
    for (; *text != '\0'; text++) {
        int digit = digit_of(*text);
        if (*text == '-')
            continue;
        if (digit < 0 || digits == 2 * SIPHASH_KEY)
            return false;
        key[digits / 2] = (uint8_t)(key[digits / 2] << 4 | digit);
        digits++;
    }
    return digits == 2 * SIPHASH_KEY;
}
