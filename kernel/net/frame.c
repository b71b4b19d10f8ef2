// See frame.h.
#include "kernel/net/frame.h"

#include "lib/string.h"

#include <lwip/pbuf.h>

#define FRAME_LEAST 60u // without the check sum

struct pbuf *frame_to_pbuf(const u8 *frame, u32 bytes)
{
    u32 room = MAX(bytes, FRAME_LEAST);
    struct pbuf *p = pbuf_alloc(PBUF_RAW, (u16_t)room, PBUF_RAM);
    if (!p)
        return NULL;
    memcpy(p->payload, frame, bytes);
    memset((u8 *)p->payload + bytes, 0, room - bytes);
    return p;
}
