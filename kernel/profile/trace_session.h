// Traces of events (strobe/trace.h): a kind of stream.
#pragma once

#include "lib/types.h"

struct stream;
struct waitq;

// `options`: the caller's struct trace_options. May sleep. 0 or the errors of
// SPROFILE_M_TRACE_BEGIN.
int trace_session_begin(u32 options, struct waitq *readers,
                        struct stream **out) MUST_CHECK;
