// Helpers of tests that take samples.
#pragma once

#include "kernel/profile/sample.h"
#include "lib/format.h"
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

// Takes the result of session_begin with that source. On an error the test
// fails, with the reason, and this returns false.
static inline bool expect_begun_by(const char *source, int err)
{
    char text[160];
    const char *why_not = NULL;
    if (!err)
        return true;
    LINKER_SET_FOR_EACH(const struct sample_source, s, sample_sources) {
        if (!strcmp((*s)->name, source))
            why_not = source_why_not(*s);
    }
    format(text, sizeof(text), "a session by %s: error %d%s%s", source, -err,
           why_not ? ", " : "", why_not ? why_not : "");
    test_fail(__FILE__, __LINE__, text);
    return false;
}
static inline bool expect_begun(int err)
{
    return expect_begun_by("the default source", err);
}
