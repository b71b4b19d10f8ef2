// Linker sets: tables that the linker assembles from one line in each file, so
// that a device or a test is added without editing a central list.
//
//     LINKER_SET_ADD(timers, rtc_timer);
//     LINKER_SET_FOR_EACH(struct timer, t, timers) ...  (t: struct timer **)
#pragma once

#include "lib/types.h"

#define LINKER_SET_ADD(set, object) LINKER_SET_ADD_PART(set, object, object)
// An object that is part of a larger one; `id` is a name for it.
#define LINKER_SET_ADD_PART(set, id, object)                \
    static const __typeof__(object) *const set##_entry_##id \
        __attribute__((used, section("set_" #set))) = &object

#define LINKER_SET_FOR_EACH(type, var, set)                       \
    extern type *const __start_set_##set[] __attribute__((weak)); \
    extern type *const __stop_set_##set[] __attribute__((weak));  \
    for (type *const *var = __start_set_##set; var < __stop_set_##set; var++)
