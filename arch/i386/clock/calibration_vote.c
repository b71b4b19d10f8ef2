#include "arch/i386/clock/calibration_vote.h"

// Differences between good clocks: a crystal has 100 ppm at most, and a reading
// of the RTC's second is uncertain by the length of an update, 2 ms.
#define CLOCKS_PPM 5000u
#define RTC_PPM 20000u

static bool agree(u64 a, u64 b, u64 ppm)
{
    u64 difference = a > b ? a - b : b - a, larger = MAX(a, b);
    return difference <= larger / 1000000 * ppm + ppm;
}

static bool votes_agree(const struct vote *a, const struct vote *b)
{
    return a->tsc_hz && b->tsc_hz &&
           agree(a->tsc_hz, b->tsc_hz,
                 (u64)CLOCKS_PPM + a->error_ppm + b->error_ppm);
}

static bool rtc_agrees(const struct vote *v, u64 rtc_hz)
{
    return v->tsc_hz && agree(v->tsc_hz, rtc_hz, (u64)RTC_PPM + v->error_ppm);
}

static u32 supporters(const struct vote *votes, u32 count, u32 of, u64 rtc_hz)
{
    u32 n = rtc_hz && rtc_agrees(&votes[of], rtc_hz);
    for (u32 i = 0; i < count; i++)
        n += i != of && votes_agree(&votes[i], &votes[of]);
    return n;
}

// If all that did measure is one plausible rate.
static bool is_alone(const struct vote *votes, u32 count, u32 *chosen)
{
    u32 n = 0;
    for (u32 i = 0; i < count; i++) {
        if (!votes[i].tsc_hz)
            continue;
        *chosen = i;
        n++;
    }
    return n == 1 && votes[*chosen].tsc_hz >= TSC_HZ_MIN &&
           votes[*chosen].tsc_hz <= TSC_HZ_MAX;
}

enum verdict calibration_vote(struct vote *votes, u32 count, u64 rtc_hz,
                              u32 *chosen)
{
    u32 most = 0;
    for (u32 i = 0; i < count; i++) {
        u32 n = supporters(votes, count, i, rtc_hz);
        if (n > most) {
            most = n;
            *chosen = i;
        }
    }
    if (!most)
        return !rtc_hz && is_alone(votes, count, chosen) ? VOTE_ALONE
                                                         : VOTE_OPEN;
    for (u32 i = 0; i < count; i++)
        votes[i].outvoted = votes[i].tsc_hz && i != *chosen &&
                            !votes_agree(&votes[i], &votes[*chosen]);
    return VOTE_AGREED;
}
