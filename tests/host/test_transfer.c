// Transfers over bad lines, with restarts of either end; files that exist,
// change, or do not fit on the disk.
// link: user/libtransfer/frame.c user/libtransfer/sender.c
// link: user/libtransfer/receiver.c user/libtransfer/store.c
#include "transfer_line.h"

// ---- lines

static void every_size_arrives(void **state UNUSED)
{
    static const size_t sizes[] = { 0,    1,    1023,  1024,
                                    1025, 8192, 10000, FILE_MAX };

    for (u32 i = 0; i < ARRAY_SIZE(sizes); i++) {
        int fd = begin(sizes[i], 0);

        assert_int_equal(run_to_the_end(), 0);
        assert_int_equal(sender.state, SENDER_DONE);
        assert_int_equal(sender.frames_resent, 0);
        assert_arrived("data", sizes[i]);
        assert_int_equal(empty_folder(), 1);
        close(fd);
    }
}

// From one fault in 20,500 bytes to one in 500, which damages most data frames.
static void bad_lines_carry_it(void **state UNUSED)
{
    for (u32 round = 0; round < 40; round++) {
        size_t size = random_below(FILE_MAX);
        int fd = begin(size, 500 + random_below(20000));

        run_to_the_end();
        assert_int_equal(sender.state, SENDER_DONE);
        assert_arrived("data", size);
        assert_int_equal(empty_folder(), 1);
        close(fd);
    }
}

// A lost frame costs a resend of the bytes in transit, not a time-out.
static void a_loss_is_noticed_at_once(void **state UNUSED)
{
    int fd = begin(FILE_MAX, 0);
    u32 losses = 0;

    while (sender.state != SENDER_DONE) {
        bool lose = losses < 20 && random_below(3) == 0;

        to_receiver.fault = lose ? 1500 : 0;
        losses += lose;
        // No later frame reveals the loss of the last ones.
        if (sender.size - sender.next < TRANSFER_WINDOW)
            to_receiver.fault = 0;
        step();
    }
    assert_true(sender.frames_resent < 20 * 2 * 8);
    assert_arrived("data", FILE_MAX);
    close(fd);
}

// A sender whose END is refused a third time gives up. So the receiver is not
// restarted after two of its restarts.
static void break_something(int fd)
{
    switch (random_below(4)) {
    case 0:
        if (sender.restarts < 2)
            start_receiver();
        break;
    case 1:
        start_sender(fd);
        break;
    case 2:
        to_receiver.used = to_sender.used = 0;
        break;
    case 3:
        to_receiver.broken = to_sender.broken = random_below(2);
        break;
    }
}

static void either_end_may_start_anew(void **state UNUSED)
{
    for (u32 round = 0; round < 60; round++) {
        size_t size = random_below(FILE_MAX);
        int fd = begin(size, random_below(2) ? 5000 : 0);

        for (u32 i = 0; i < 200 && sender.state != SENDER_DONE; i++) {
            if (random_below(8) == 0)
                break_something(fd);
            step();
        }
        to_receiver.broken = to_sender.broken = false;
        run_to_the_end();
        assert_int_equal(sender.state, SENDER_DONE);
        assert_arrived("data", size);
        assert_int_equal(empty_folder(), 1);
        close(fd);
    }
}

static void it_goes_on_where_it_was(void **state UNUSED)
{
    int fd = begin(FILE_MAX, 0);
    u64 had;

    while (receiver.received < FILE_MAX / 2)
        step();
    had = receiver.received;
    start_receiver();
    set_line(0);
    start_sender(fd);
    run_to_the_end();
    assert_int_equal(sender.resumed, had);
    assert_arrived("data", FILE_MAX);

    // A second transfer of the same file sends no data.
    start_receiver();
    start_sender(fd);
    run_to_the_end();
    assert_int_equal(sender.resumed, FILE_MAX);
    assert_int_equal(empty_folder(), 1);
    close(fd);
}

// ---- files

static void a_wrong_part_is_thrown_away(void **state UNUSED)
{
    int fd = begin(FILE_MAX, 0), part;

    while (receiver.received < FILE_MAX / 2)
        step();
    part = openat(folder, receiver.store.part_name, O_WRONLY);
    assert_int_equal(pwrite(part, "changed", 7, 100), 7);
    close(part);
    start_receiver();
    set_line(0);
    start_sender(fd);
    run_to_the_end();
    assert_int_equal(sender.state, SENDER_DONE);
    assert_arrived("data", FILE_MAX);
    assert_int_equal(empty_folder(), 1);
    close(fd);
}

static void no_file_is_overwritten(void **state UNUSED)
{
    static u8 first[FILE_MAX];
    int fd = begin(1000, 0);

    run_to_the_end();
    memcpy(first, content, 1000);
    close(fd);
    fd = make_file(1000);
    start_sender(fd);
    run_to_the_end();
    assert_arrived("data.2", 1000);
    memcpy(content, first, 1000);
    assert_arrived("data", 1000);
    assert_int_equal(empty_folder(), 2);
    close(fd);
}

static void a_file_that_changes_is_given_up(void **state UNUSED)
{
    int fd = begin(FILE_MAX, 0);

    assert_int_equal(pwrite(fd, "changed", 7, FILE_MAX - 7), 7);
    run_to_the_end();
    assert_int_equal(sender.state, SENDER_FAILED);
    assert_non_null(strstr(sender.problem, "checksum"));

    begin(FILE_MAX, 0);
    fd = sender.file;
    assert_int_equal(ftruncate(fd, 10), 0);
    run_to_the_end();
    assert_int_equal(sender.state, SENDER_FAILED);
    assert_non_null(strstr(sender.problem, "shorter"));
    close(fd);
}

static void a_full_disk_is_reported(void **state UNUSED)
{
    int fd = begin(FILE_MAX, 0), full = open("/dev/full", O_WRONLY);

    while (receiver.received == 0)
        step();
    dup2(full, receiver.store.part);
    close(full);
    run_to_the_end();
    assert_int_equal(sender.state, SENDER_FAILED);
    assert_string_equal(sender.problem, "No space left on device");
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_arrives),
        cmocka_unit_test(bad_lines_carry_it),
        cmocka_unit_test(a_loss_is_noticed_at_once),
        cmocka_unit_test(either_end_may_start_anew),
        cmocka_unit_test(it_goes_on_where_it_was),
        cmocka_unit_test(a_wrong_part_is_thrown_away),
        cmocka_unit_test(no_file_is_overwritten),
        cmocka_unit_test(a_file_that_changes_is_given_up),
        cmocka_unit_test(a_full_disk_is_reported),
    };

    random_init();
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
