// What the parts of top share.
#pragma once

#include <stdbool.h>

#include "rows.h"

#define DELAY_MIN 0.1 // seconds: as fast as one can read
#define DELAY_MAX 3600.0

struct top;

// A question on the status line, and the answer as far as it is typed.
struct prompt {
    const char *question; // NULL: nothing is asked
    char text[FILTER_MAX];
    size_t size;
    void (*done)(struct top *top, const char *answer);
};

struct top {
    struct choice choice;
    double delay;    // seconds between refreshes
    long iterations; // still to be shown; -1: no end
    // Two data sets; `now` tells which is the later one.
    struct dataset data[2];
    int now;
    struct comparison comparison;
    struct rows rows;
    // Interactive only:
    size_t first;           // row at the top of the list
    size_t page_rows;       // rows that the list has on the screen
    char escape, parameter; // of an escape sequence that is under way
    struct prompt prompt;
    uint32_t target;  // of the signal or nice value that is asked for
    char message[80]; // instead of the status line, until a key comes
    bool help, quit;
    bool hurry; // refresh now
};

// Reads the next data set and compares it with the last one. Ends the program
// with a message when the kernel does not tell.
void top_refresh(struct top *t);
// Sleeps without being cut short.
void top_sleep(double seconds);
// A number of seconds within the limits. False: it is none (nothing is said).
bool parse_delay(const char *text, double *out);

// Runs until a key, a signal or the number of iterations ends it; the status
// for main. (interactive.c)
int interactive(struct top *t);
// Handles what was typed. (keys.c)
void keys_input(struct top *t, const char *bytes, size_t count);
// Prints each refresh; the status for main. (batch.c)
int batch(struct top *t, bool json);
