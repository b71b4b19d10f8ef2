#include "perfetto_packet.h"

#define TRACE_PACKET 1 // field number in Trace
#define SEQUENCE 1     // the only one

void perfetto_put(FILE *out, struct message *packet)
{
    struct message trace = { 0 };

    message_number(packet, PACKET_SEQUENCE, SEQUENCE);
    message_add(&trace, TRACE_PACKET, packet);
    fwrite(trace.bytes, 1, trace.size, out);
    message_free(&trace);
}
