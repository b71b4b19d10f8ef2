// The transfer of a file over a bad line: what the two sides say to each other.
//
// The sender announces a file (BEGIN). The receiver says from where on it wants
// it (START): not from the beginning if an earlier run was cut off. DATA
// follow, at most WINDOW bytes ahead of what the receiver has confirmed; it
// takes them in order only and answers each with how far it has come (ACK). An
// answer that brings nothing new tells that something was lost, and the sender
// goes back to there; each time it does is a new turn, so that late answers to
// what was sent before do not send it back again. Last, END and DONE, when the
// checksum of the whole file has been found right.
//
// Everything may be repeated without harm, and either side may be started
// again at any moment. A file is known by the checksum of its BEGIN: what comes
// for a file that the receiver does not have before it is answered with AGAIN.
#pragma once

enum {
    TRANSFER_BEGIN = 'b',   // size (8), CRC-32 (4), name
    TRANSFER_START = 's',   // id (4), offset (8)
    TRANSFER_DATA = 'd',    // id (4), turn (4), offset (8), bytes
    TRANSFER_ACK = 'a',     // id (4), turn (4), offset (8)
    TRANSFER_END = 'e',     // id (4)
    TRANSFER_DONE = 'k',    // id (4)
    TRANSFER_AGAIN = 'w',   // id (4)
    TRANSFER_REFUSED = 'x', // id (4), the reason in words
};

#define TRANSFER_NAME_MAX 200
#define TRANSFER_TEXT_MAX 200   // of a reason
#define TRANSFER_DATA_SIZE 1024 // bytes of the file in one frame
#define TRANSFER_WINDOW (8 * TRANSFER_DATA_SIZE)

// How long the sender waits for an answer. What is under way then takes 0.7 s
// at 115200 bit/s.
#define TRANSFER_TIMEOUT_MS 1000

// Where the fields are.
enum { ID_SIZE = 4 };
enum { BEGIN_CRC = 8, BEGIN_NAME = 12 };
enum { START_OFFSET = 4, START_SIZE = 12 };
enum { DATA_TURN = 4, DATA_OFFSET = 8, DATA_BYTES = 16, ACK_SIZE = 16 };
