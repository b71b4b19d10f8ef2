#include "stream.h"

#include <string.h>

#define PC_OFFSET offsetof(struct sprofile_sample, pc)

static bool sample(struct stream_reader *r, const struct sprofile_record *head)
{
    const struct sprofile_sample *s = (const void *)head;
    if (head->size < PC_OFFSET)
        return false;
    uint32_t words = (head->size - PC_OFFSET) / 4;
    uint32_t used = s->kernel_depth + s->stack_words + s->user_depth;
    if (used > words || s->kernel_depth + s->user_depth == 0)
        return false;
    struct stream_sample out = {
        .time = head->time,
        .period = s->period,
        .task = s->task,
        .thread = s->thread,
        .cpu = head->cpu,
        .flags = head->flags,
        .kernel = s->pc,
        .kernel_depth = s->kernel_depth,
        .stack = s->pc + s->kernel_depth,
        .stack_words = s->stack_words,
        .user = s->pc + s->kernel_depth + s->stack_words,
        .user_depth = s->user_depth,
    };
    if (head->flags & SPROFILE_F_USER_SIGNALS) {
        out.signals = (const void *)(s->pc + used);
        out.signal_count = (words - used) / (sizeof(*out.signals) / 4);
    }
    if (r->sample)
        r->sample(r->arg, &out);
    return true;
}

static bool task(struct stream_reader *r, const struct sprofile_record *head)
{
    const struct sprofile_task *t = (const void *)head;
    size_t fixed = sizeof(*t);
    if (head->flags & SPROFILE_F_LOAD_BIAS)
        fixed += sizeof(uint32_t);
    if (head->size <= fixed || t->build_id_size > sizeof(t->build_id) ||
        !memchr(t->name, 0, sizeof(t->name)) ||
        !memchr(t->path, 0, head->size - fixed))
        return false;
    if (r->task)
        r->task(r->arg, t);
    return true;
}

static bool times(struct stream_reader *r, const struct sprofile_record *head)
{
    const struct sprofile_times *t = (const void *)head;
    if (head->size < sizeof(*t))
        return false;
    if (r->times)
        r->times(r->arg, t);
    return true;
}

static bool lost(struct stream_reader *r, const struct sprofile_record *head)
{
    const struct sprofile_lost *l = (const void *)head;
    if (head->size < sizeof(*l))
        return false;
    if (r->lost)
        r->lost(r->arg, head->cpu, l->count);
    return true;
}

static bool record(struct stream_reader *r, const struct sprofile_record *head)
{
    switch (head->type) {
    case SPROFILE_R_SAMPLE:
        return sample(r, head);
    case SPROFILE_R_TASK:
        return task(r, head);
    case SPROFILE_R_LOST:
        return lost(r, head);
    case SPROFILE_R_TIMES:
        return times(r, head);
    }
    return true; // of a later version: skipped
}

size_t stream_read(struct stream_reader *r, const void *bytes, size_t size)
{
    const char *at = bytes;
    size_t left = size;
    while (left >= sizeof(struct sprofile_record)) {
        const struct sprofile_record *head = (const void *)at;
        if (head->size < sizeof(*head) || head->size % 8 != 0) {
            r->malformed++;
            return size;
        }
        if (head->size > left)
            break;
        r->malformed += !record(r, head);
        at += head->size;
        left -= head->size;
    }
    return size - left;
}
