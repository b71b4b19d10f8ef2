// Sessions of strobe remote over good, bad and broken networks: what comes is
// in the file, in order, and all the rest is counted.
// link: user/libstrobe/core_clock.c
// link: user/libremote/siphash.c user/libremote/message.c
// link: user/libremote/records.c user/libremote/server.c
// link: user/libremote/client.c tools/strobe-src/remote_file.c
// link: build/lz4/src/lib/lz4.c
// link: user/libprofile/perf_repair.c user/libprofile/mapping.c
// link: user/libprofile/perf_features.c user/libprofile/shares.c
// link: user/libprofile/images_read.c user/libstrobe/table.c
// link: user/libprofile/perf_read.c user/libprofile/perf_walk.c
// link: user/libprofile/perf_programs.c
// link: user/libprofile/samples.c user/libprofile/stream.c
// link: user/libprofile/chains.c user/libprofile/images.c
// link: user/libprofile/programs.c user/libprofile/user_chain.c
// link: user/libprofile/perf_topology.c
// link: user/libprofile/task_times.c
#include "remote_net.h"

#include <unistd.h>

#include "user/libprofile/perf_read.h"
#include "user/libprofile/perf_walk.h"

#define CONTENT_MAX (4u << 20)
#define EVENTS 2u

// --- the file that the program writes ---------------------------------------

static u64 made[EVENTS + 1]; // others, samples of each event

static void add(const void *bytes, size_t size)
{
    memcpy(content + content_size, bytes, size);
    content_size += size;
}

static void add_header(void)
{
    struct perf_header h = {
        .size = sizeof(h),
        .attr_size = sizeof(struct perf_file_attr),
        .attrs = { sizeof(h) + EVENTS * 8,
                   EVENTS * sizeof(struct perf_file_attr) },
        .data = { sizeof(h) + EVENTS * (8 + sizeof(struct perf_file_attr)), 0 },
    };

    memcpy(h.magic, PERF_MAGIC, sizeof(h.magic));
    add(&h, sizeof(h));
    for (u64 id = 1; id <= EVENTS; id++)
        add(&id, sizeof(id));
    for (u32 i = 0; i < EVENTS; i++) {
        struct perf_file_attr a = {
            .attr = { .size = sizeof(a.attr), .sample_type = PERF_SAMPLE_OURS },
            .ids = { sizeof(h) + i * 8, 8 },
        };
        add(&a, sizeof(a));
    }
}

// Each sample has its number as period.
static void add_sample(u32 event)
{
    u64 number = ++made[event + 1];
    struct perf_sample s = { .head = { PERF_RECORD_SAMPLE, PERF_MISC_USER,
                                       PERF_SAMPLE_PLAIN },
                             .id = event + 1,
                             .ip = 0x8048000 + random_below(5000),
                             .pid = 7,
                             .tid = 7,
                             .time = number * 1000000,
                             .period = number };

    add(&s, PERF_SAMPLE_PLAIN);
}

static void add_info(u32 event)
{
    struct {
        struct perf_strobe own;
        struct sprofile_info info;
        u8 padding[8];
    } r = { .own = { .magic = PERF_STROBE_MAGIC,
                     .kind = PERF_STROBE_INFO | event << 16,
                     .size = sizeof(r.info) },
            .info = { .cpus = 1, .taken = made[event + 1] } };
    size_t size = ALIGN_UP(sizeof(r.own) + sizeof(r.info), 8u);

    r.own.head = (struct perf_record){ PERF_RECORD_STROBE, 0, (u16)size };
    add(&r, size);
    made[0]++;
}

static void add_comm(void)
{
    struct perf_comm c = { .head = { PERF_RECORD_COMM, 0, sizeof(c) },
                           .pid = random_below(100) };

    for (u32 i = 0; i < 15; i++)
        c.name[i] = 'a' + random_below(26);
    add(&c, sizeof(c));
    made[0]++;
}

static void make_content(size_t size)
{
    content_size = 0;
    memset(made, 0, sizeof(made));
    made[0] = 1; // the header counts as a record
    add_header();
    while (content_size < size) {
        u32 what = random_below(100);
        if (what < 90)
            add_sample(what < 60 ? 0 : 1);
        else if (what < 98)
            add_comm();
        else
            add_info(what - 98);
    }
    add_info(0);
    add_info(1);
}

// --- the file that came -----------------------------------------------------

static u8 *got;
static size_t got_size;

static void begin(size_t size)
{
    FILE *f = tmpfile();

    make_content(size);
    start_server();
    start_client();
    remote_file_begin(&file, dup(fileno(f)));
    fclose(f);
    per_step = 20000;
    set_network(0, 0, 0, 0);
}

static void end(void)
{
    const char *problem = remote_file_end(
        &file, client.state == REMOTE_ENDED ? &client.end : NULL, &client);

    assert_null(problem);
    got_size = (size_t)lseek(file.fd, 0, SEEK_END);
    got = malloc(got_size);
    assert_int_equal(pread(file.fd, got, got_size, 0), got_size);
    close(file.fd);
}

// Every sample is there once, in its order, or counted as lost where it was.
static void check_samples(void)
{
    struct perf_layout layout;
    struct perf_walk walk = { .layout = &layout };
    struct perf_view v;
    u64 next[EVENTS] = { 1, 1 };

    assert_null(perf_layout(&layout, got, got_size));
    while (perf_next(&walk, &v)) {
        struct perf_sample s;
        struct perf_lost l;
        if (v.head.type == PERF_RECORD_LOST) {
            assert_true(perf_get(&v, &l, sizeof(l)));
            next[l.id - 1] += l.count;
        } else if (v.head.type == PERF_RECORD_SAMPLE) {
            assert_true(perf_get(&v, &s, PERF_SAMPLE_PLAIN));
            assert_int_equal(s.period, next[s.id - 1]++);
        }
    }
    assert_false(walk.corrupt || walk.cut_bytes > 0);
    for (u32 i = 0; i < EVENTS; i++)
        assert_int_equal(next[i], made[i + 1] + 1);
}

static u8 *no_file(const char *path UNUSED, size_t *size UNUSED)
{
    return NULL;
}

// What strobe report reads of it.
static void check_report(void)
{
    struct perf_file files[EVENTS] = { { .event = 0 }, { .event = 1 } };
    struct samples s;
    u64 lost = 0;

    assert_int_equal(samples_init(&s, (image_reader)no_file), 0);
    assert_null(perf_read(files, EVENTS, &s, got, got_size));
    for (u32 i = 0; i < EVENTS; i++) {
        const struct perf_file *f = &files[i];
        assert_true(f->is_remote && f->has_info && !f->cut);
        assert_int_equal(f->info.taken, made[i + 1]);
        assert_int_equal(f->info.lost, f->info.taken - f->samples);
        assert_int_equal(f->lost, f->info.lost);
        lost += f->lost;
    }
    assert_int_equal(files[0].remote.lost_samples, lost);
    assert_int_equal(files[0].remote.lost, client.lost);
    assert_int_equal(files[0].remote.program_ns, 5000);
    samples_free(&s);
}

static void check_file(void)
{
    end();
    check_samples();
    check_report();
    assert_int_equal(client.end.status, 3);
    assert_int_equal(client.come + client.lost, client.end.datagrams + 1);
    assert_string_equal(text, "text");
    free(got);
}

// --- tests ------------------------------------------------------------------

// Appendix A of the paper, and two of the authors' vectors.h.
static void codes(void **state UNUSED)
{
    u8 key[SIPHASH_KEY], bytes[16];

    for (u32 i = 0; i < 16; i++)
        key[i] = bytes[i] = i;
    assert_true(siphash(key, bytes, 15) == 0xa129ca6149be45e5);
    assert_true(siphash(key, bytes, 0) == 0x726fdb47dd0e0e31);
    assert_true(siphash(key, bytes, 1) == 0x74f839c593dc67fd);
}

static void keys(void **state UNUSED)
{
    u8 key[SIPHASH_KEY], back[SIPHASH_KEY];
    char shown[REMOTE_KEY_TEXT];

    draw(NULL, key, sizeof(key));
    remote_key_print(shown, key);
    assert_int_equal(strlen(shown), 35);
    assert_true(remote_key_parse(back, shown));
    assert_memory_equal(key, back, sizeof(key));
    assert_true(remote_key_parse(back, "00112233445566778899AAbbccddeeff"));
    assert_int_equal(back[10], 0xaa);
    assert_false(remote_key_parse(back, "00112233445566778899AAbbccddeef"));
    assert_false(remote_key_parse(back, "00112233445566778899AAbbccddeeff0"));
    assert_false(remote_key_parse(back, "0011223344556677889xAAbbccddeeff"));
    assert_false(remote_key_parse(back, ""));
}

static void records_are_found_in_any_pieces(void **state UNUSED)
{
    make_content(100000);
    for (u32 round = 0; round < 20; round++) {
        struct records r = { 0 };
        struct records_piece p;
        for (size_t at = 0; at < content_size;) {
            size_t n = MIN(content_size - at, (size_t)random_below(3000));
            records_read(&r, content + at, n, &p);
            if (p.first != REMOTE_NONE) {
                // A reader that begins there finds the same records.
                struct records other = { 0 };
                records_resume(&other, p.counted);
                records_read(&other, content + at + p.first, n - p.first, NULL);
                assert_memory_equal(r.counted, other.counted,
                                    sizeof(r.counted));
            }
            at += n;
        }
        assert_false(r.corrupt);
        assert_int_equal(r.events, EVENTS);
        assert_memory_equal(r.counted, made, sizeof(made));
    }
}

static void a_good_network_loses_nothing(void **state UNUSED)
{
    static const u32 sizes[] = { 1, 3000, 100000, 1500000 };

    for (u32 i = 0; i < ARRAY_SIZE(sizes); i++) {
        begin(sizes[i]);
        run_to_the_end();
        assert_int_equal(begins, 1);
        assert_int_equal(client.words_size, server.words_size);
        assert_memory_equal(server.words, "lua\0x", 6);
        assert_int_equal(client.lost, 0);
        assert_int_equal(server.resent, 0);
        assert_int_equal(file.taken, content_size);
        // They compress to half at least.
        if (content_size > 100000)
            assert_true(to_client.bytes < content_size / 2);
        check_file();
        step();
        step();
        assert_int_equal(server.state, REMOTE_IDLE);
    }
}

// On a line the program waits, even in an outage.
static void a_line_loses_nothing(void **state UNUSED)
{
    begin(1500000);
    server.ahead_max = 8;
    set_network(50, 0, 50, 0);
    while (client.come < 20)
        step();
    to_client.dead = true;
    for (u32 i = 0; i < 300; i++) {
        step();
        assert_true(server.number - server.acked <= 8);
    }
    to_client.dead = false;
    run_to_the_end();
    assert_int_equal(client.lost, 0);
    check_file();
}

// What is under way is not sent again, what was lost is, and soon.
static void a_slow_network_is_not_flooded(void **state UNUSED)
{
    begin(1500000);
    to_client.delay = RESEND_MS * 3 / 2;
    run_to_the_end();
    assert_int_equal(server.resent, 0);
    check_file();
    begin(1500000);
    to_client.delay = RESEND_MS * 3 / 2;
    to_client.lost = 50;
    run_to_the_end();
    assert_true(server.resent > 0 && server.resent < server.number / 5);
    assert_int_equal(client.lost, 0);
    check_file();
}

static void bad_networks_carry_it(void **state UNUSED)
{
    for (u32 round = 0; round < 25; round++) {
        begin(random_below(300000));
        per_step = 1000 + random_below(30000);
        set_network(random_below(300), random_below(300), random_below(200),
                    random_below(300));
        run_to_the_end();
        assert_int_equal(client.state, REMOTE_ENDED);
        assert_int_equal(begins, 1);
        check_file();
        assert_int_equal(client.corrupt, 0);
    }
}

// 300 KB of 20 KB a step: more than the window holds.
static void an_outage_is_counted(void **state UNUSED)
{
    for (u32 round = 0; round < 5; round++) {
        begin(CONTENT_MAX - 100000);
        while (client.come < 20)
            step();
        to_client.dead = to_server.dead = true;
        for (u32 i = 0; i < 150; i++)
            step();
        to_client.dead = to_server.dead = false;
        run_to_the_end();
        assert_int_equal(client.state, REMOTE_ENDED);
        assert_true(client.lost > 0 && file.lost_bytes > 0);
        assert_true(file.lost[1] > 0 && file.lost[2] > 0 && file.lost[0] > 0);
        check_file();
    }
}

// What is needed to read the file is not lost, however long it takes.
static void the_beginning_is_waited_for(void **state UNUSED)
{
    begin(1000);
    // No samples, but more than the window.
    content_size = 0;
    add_header();
    while (content_size < CONTENT_MAX - 100000)
        add_comm();
    per_step = 1 << 20;
    while (begins == 0)
        step();
    to_client.dead = true;
    for (u32 i = 0; i < 100; i++)
        step();
    to_client.dead = false;
    run_to_the_end();
    assert_int_equal(client.lost, 0);
    assert_true(client.come > 2 * REMOTE_WINDOW);
    assert_int_equal(file.taken, content_size);
    close(file.fd);
}

static void a_client_that_vanishes(void **state UNUSED)
{
    begin(CONTENT_MAX - 100000);
    per_step = 100;
    while (client.come < 3)
        step();
    // Somebody repeats its last REPORT.
    while (!to_server.queue[0].used) {
        now += REPORT_MS;
        remote_client_tick(&client, now);
    }
    struct flying last = to_server.queue[0];
    assert_int_equal(((struct remote_head *)last.bytes)->type, REMOTE_REPORT);
    to_server.dead = true;
    for (u32 i = 0; i < REMOTE_SILENCE_MS / STEP_MS - 20; i++) {
        step();
        to_the_server(last.bytes, last.size);
    }
    assert_int_equal(server.state, REMOTE_RUNNING);
    for (u32 i = 0; i < 40; i++)
        step();
    assert_int_equal(server.state, REMOTE_IDLE);
    assert_int_equal(vanished, 1);
    // The client finds out, too, and its file is whole.
    run_to_the_end();
    assert_int_equal(client.state, REMOTE_SILENT);
    end();
    free(got);
    // And the next one is served.
    begin(10000);
    run_to_the_end();
    check_file();
}

static void it_ends_when_asked(void **state UNUSED)
{
    begin(CONTENT_MAX - 100000);
    while (client.come < 20)
        step();
    assert_int_equal(stops, 0);
    remote_client_stop(&client, now);
    run_to_the_end();
    assert_true(stops > 0 && written < content_size);
    assert_int_equal(client.lost, 0);
    assert_int_equal(file.taken, written);
    assert_int_equal(client.state, REMOTE_ENDED);
    close(file.fd);
}

static void one_session_at_a_time(void **state UNUSED)
{
    begin(CONTENT_MAX - 100000);
    while (client.come < 3)
        step();
    u64 session = server.session;
    start_client();
    run_to_the_end();
    assert_int_equal(client.state, REMOTE_DENIED);
    assert_string_equal(client.why, "another session is running there");
    assert_int_equal(begins, 0);
    assert_true(server.session == session);
    close(file.fd);
}

// All that a client sent in a session does nothing when it is sent again.
static void nothing_is_replayed(void **state UNUSED)
{
    static struct flying tape[QUEUE];
    u32 count = 0;

    begin(400000);
    per_step = 1000;
    while (client.state <= REMOTE_GETS) {
        now += STEP_MS;
        if (client.come > 100)
            remote_client_stop(&client, now);
        remote_client_tick(&client, now);
        for (u32 i = 0; i < QUEUE; i++) {
            if (to_server.queue[i].used && count < QUEUE)
                tape[count++] = to_server.queue[i];
        }
        arrive(&to_server);
        if (server.state == REMOTE_RUNNING)
            run_program();
        arrive(&to_client);
    }
    arrive(&to_server);
    assert_true(count > 10 && stops > 0 && begins == 1);
    assert_int_equal(server.state, REMOTE_IDLE);
    close(file.fd);
    // To an idle server, and to one with another session.
    for (u32 round = 0; round < 2; round++) {
        begins = stops = 0;
        u64 before = to_client.bytes, sent = 0;
        // The first HELLO is the last one, so that the START is alone.
        for (u32 i = count; i-- > 0;) {
            to_the_server(tape[i].bytes, tape[i].size);
            sent += tape[i].size;
        }
        assert_int_equal(begins + stops, 0);
        assert_true(to_client.bytes - before <= sent);
        if (round == 1)
            break;
        u8 key[SIPHASH_KEY];
        memcpy(key, server.key, sizeof(key));
        begin(CONTENT_MAX - 100000);
        memcpy(server.key, key, sizeof(key));
        memcpy(client.key, key, sizeof(key));
        while (client.come < 3)
            step();
    }
    assert_int_equal(server.state, REMOTE_RUNNING);
    close(file.fd);
}

static void without_the_key_nothing_is_answered(void **state UNUSED)
{
    u8 bytes[REMOTE_DATAGRAM_MAX + 100];

    begin(1000);
    client.key[7] ^= 1;
    run_to_the_end();
    assert_int_equal(client.state, REMOTE_SILENT);
    for (u32 i = 0; i < 20000; i++) {
        size_t size = random_below(sizeof(bytes));
        draw(NULL, bytes, MIN(size, 64u));
        if (random_below(2) && size >= sizeof(struct remote_head))
            remote_head_make(bytes, "hsrdax"[random_below(6)],
                             server.next_session);
        u8 *own = malloc(size + !size);
        memcpy(own, bytes, size);
        assert_int_equal(remote_server_take(&server, own, size, now),
                         REMOTE_REJECTED);
        free(own);
    }
    assert_int_equal(begins, 0);
    assert_int_equal(to_client.datagrams, 0);
    assert_int_equal(server.next_session, 0);
    close(file.fd);
}

// A peer that has the key, but sends anything.
static void strange_peers(void **state UNUSED)
{
    static const char types[] = "hcsaxrd";
    u8 bytes[REMOTE_DATAGRAM_MAX];

    for (u32 round = 0; round < 40; round++) {
        begin(100000);
        while (client.come < 3)
            step();
        for (u32 i = 0; i < 2000; i++) {
            size_t size = sizeof(struct remote_head) +
                          random_below(REMOTE_DATAGRAM_MAX - REMOTE_CODE -
                                       sizeof(struct remote_head));
            if (random_below(3) == 0)
                size = MIN(size, (size_t)sizeof(struct remote_head) +
                                     random_below(60));
            draw(NULL, bytes, MIN(size, 120u));
            u8 type = types[random_below(7)];
            remote_head_make(bytes, type,
                             random_below(4) ? server.session : client.nonce);
            if (type == REMOTE_DATA && size >= sizeof(struct remote_data)) {
                struct remote_data *d = (struct remote_data *)bytes;
                d->number = client.next + random_below(300);
                d->oldest = d->number - random_below(300);
                d->channel %= 4;
                d->counters %= 20;
                d->packed %= 2;
                if (random_below(2))
                    d->offset = file.taken;
            }
            u8 *own = malloc(size + REMOTE_CODE);
            memcpy(own, bytes, size);
            size = remote_seal(server.key, own, size);
            if (random_below(2))
                remote_client_take(&client, own, size, now);
            else
                to_the_server(own, size);
            free(own);
            if (client.state > REMOTE_GETS)
                break;
        }
        close(file.fd);
    }
}

static int set_up(void **state UNUSED)
{
    content = malloc(CONTENT_MAX);
    return 0;
}

static int tear_down(void **state UNUSED)
{
    free(content);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes),
        cmocka_unit_test(keys),
        cmocka_unit_test(records_are_found_in_any_pieces),
        cmocka_unit_test(a_good_network_loses_nothing),
        cmocka_unit_test(a_line_loses_nothing),
        cmocka_unit_test(a_slow_network_is_not_flooded),
        cmocka_unit_test(bad_networks_carry_it),
        cmocka_unit_test(an_outage_is_counted),
        cmocka_unit_test(the_beginning_is_waited_for),
        cmocka_unit_test(a_client_that_vanishes),
        cmocka_unit_test(it_ends_when_asked),
        cmocka_unit_test(one_session_at_a_time),
        cmocka_unit_test(nothing_is_replayed),
        cmocka_unit_test(without_the_key_nothing_is_answered),
        cmocka_unit_test(strange_peers),
    };

    random_init();
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
