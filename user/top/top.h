// Declarations shared by the parts of top.
#pragma once

#include <stdbool.h>

#include "rows.h"

#define DELAY_MIN 0.1 // seconds: a person cannot read faster refreshes
#define DELAY_MAX 3600.0

struct top;

// A question on the status line, and the answer typed so far.
struct prompt {
    const char *question; // NULL: no prompt
    char text[FILTER_MAX];
    size_t size;
    void (*done)(struct top *top, const char *answer);
};

struct top {
    struct choice choice;
    double delay;    // seconds between refreshes
    long iterations; // refreshes left to show; -1: no limit
    // Two data sets; `now` is the index of the later one.
    struct dataset data[2];
    int now;
    struct comparison comparison;
    struct rows rows;
    // Interactive only:
    size_t first;           // first row that is shown
    size_t page_rows;       // rows of the list that fit on the screen
    char escape, parameter; // state of an incomplete escape sequence
    struct prompt prompt;
    uint32_t target;  // of the signal or nice value in the prompt
    char message[80]; // replaces the status line until the next key
    bool help, quit;
    bool refresh_now; // refresh now
};

// Reads the next data set and compares it with the last one. Ends the program
// with a message if a node cannot be read.
void top_refresh(struct top *t);
// Sleeps for the whole time, restarting after signals.
void top_sleep(double seconds);
// Parses a number of seconds within the limits. Returns false, without a
// message, if it is invalid.
bool parse_delay(const char *text, double *out);

// Runs until a key, a signal or the number of iterations ends it. Returns the
// exit status for main. (interactive.c)
int interactive(struct top *t);
// Handles typed keys. (keys.c)
void keys_input(struct top *t, const char *bytes, size_t count);
// Prints each refresh. Returns the exit status for main. (batch.c)
int batch(struct top *t, bool json);
