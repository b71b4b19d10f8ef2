// Helpers of tests that take samples.
#pragma once

#include "kernel/profile/sample.h"
#include "lib/string.h"
#include "tests/kernel/test.h"

// True if the machine lacks this sample source: skips the test, with the
// reason.
static inline bool source_lacks(const char *name)
{
    const char *why_not = "no such sample source";
    LINKER_SET_FOR_EACH(const struct sample_source, s, sample_sources) {
        if (!strcmp((*s)->name, name))
            why_not = (*s)->why_not(*s);
    }
    if (why_not)
        test_skip(why_not);
    return why_not != NULL;
}

// Takes the result of session_begin. On an error the test fails and this
// returns false.
static inline bool expect_begun(int err)
{
    expect(!err);
    return !err;
}
