// For tests that take samples.
#pragma once

#include "kernel/profile/sample.h"
#include "lib/string.h"
#include "tests/kernel/test.h"

// Whether the machine cannot take samples so: then the test is skipped, with
// the reason.
static inline bool source_lacks(const char *name)
{
    const char *why_not = "there is no such sample source";
    LINKER_SET_FOR_EACH(const struct sample_source, s, sample_sources) {
        if (!strcmp((*s)->name, name))
            why_not = (*s)->why_not(*s);
    }
    if (why_not)
        test_skip(why_not);
    return why_not != NULL;
}

// What session_begin has returned: false, and a failure of the test, if no
// session.
static inline bool expect_begun(int err)
{
    expect(!err);
    return !err;
}
