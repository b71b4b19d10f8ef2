// The protocol to transfer a file over an unreliable line: go-back-N with
// cumulative acknowledgements.
//
// The sender announces a file (BEGIN). The receiver answers with the offset to
// start from (START), which is not 0 if an earlier run was interrupted. DATA
// frames follow, at most TRANSFER_WINDOW bytes ahead of the confirmed offset.
// The receiver accepts them in order only, and answers each with the offset it
// has reached (ACK). An ACK without progress means that a frame was lost: the
// sender goes back to that offset and begins a new turn. ACKs of earlier turns
// are ignored, so that late answers do not make the sender go back again. The
// transfer ends with END and DONE, after the checksum of the whole file was
// verified.
//
// Every frame may be repeated without harm, and either side may be restarted at
// any time. A file is identified by the checksum of its BEGIN. A frame for
// another file than the receiver's current one is answered with AGAIN.
#pragma once

enum {
    TRANSFER_BEGIN = 'b',   // size (8), CRC-32 (4), name
    TRANSFER_START = 's',   // id (4), offset (8)
    TRANSFER_DATA = 'd',    // id (4), turn (4), offset (8), bytes
    TRANSFER_ACK = 'a',     // id (4), turn (4), offset (8)
    TRANSFER_END = 'e',     // id (4)
    TRANSFER_DONE = 'k',    // id (4)
    TRANSFER_AGAIN = 'w',   // id (4)
    TRANSFER_REFUSED = 'x', // id (4), the reason as text
};

#define TRANSFER_NAME_MAX 200
#define TRANSFER_TEXT_MAX 200   // maximum size of a reason
#define TRANSFER_DATA_SIZE 1024 // bytes of the file in a frame
#define TRANSFER_WINDOW (8 * TRANSFER_DATA_SIZE)

// How long the sender waits for an answer. A full window takes 0.7 s at 115200
// bit/s.
#define TRANSFER_TIMEOUT_MS 1000

// Sizes and offsets of the fields.
enum { ID_SIZE = 4 };
enum { BEGIN_CRC = 8, BEGIN_NAME = 12 };
enum { START_OFFSET = 4, START_SIZE = 12 };
enum { DATA_TURN = 4, DATA_OFFSET = 8, DATA_BYTES = 16, ACK_SIZE = 16 };
