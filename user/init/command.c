// The part of init that tools/vm drives: runs one command, and sends its
// output, status and files over the second serial port.
//
// The data is a sequence of frames (user/libtransfer/frame.h). Types: H hello,
// O and E output and error output, F a piece of the tar file of /out, X the
// exit status (4 bytes), Z end. The host sends one byte back when it has
// received Z, so that no data is lost when the power is switched off.

#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "user/libtransfer/frame.h"

#define LINK "/dev/ttyS1"
#define ORACLE_END 0x4c434152 // tools/oracle/oracle.c
#define HOST_WAIT_S 2         // time limit for the host's last byte
#define LAST_PIECES 32 // what a pipe can still hold when the shell has ended

static int link_fd;

static void write_all(int fd, const unsigned char *data, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, data, size);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            say("%s: %s", LINK, strerror(errno));
            return;
        }
        data += written;
        size -= written;
    }
}

static void send(char type, const void *payload, size_t size)
{
    unsigned char frame[FRAME_MAX];

    write_all(link_fd, frame, frame_encode(frame, type, payload, size));
}

// Sends what can be read from `fd` without waiting. Returns 0 at end of file.
static int forward(char type, int fd)
{
    char data[FRAME_PAYLOAD_MAX];
    ssize_t size = read(fd, data, sizeof(data));

    if (size > 0)
        send(type, data, size);
    return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
}

int link_hello(void)
{
    struct termios mode;

    link_fd = open(LINK, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (link_fd < 0 || tcgetattr(link_fd, &mode) < 0)
        return -1;
    cfmakeraw(&mode);
    if (tcsetattr(link_fd, TCSANOW, &mode) < 0)
        return -1;
    send('H', "", 0);
    return 0;
}

static void enter_pipes(void *argument)
{
    int(*pipes)[2] = argument;

    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    dup2(pipes[0][1], STDOUT_FILENO);
    dup2(pipes[1][1], STDERR_FILENO);
}

// The exit code in the shell's convention: 128+n for signal n.
static uint32_t exit_code(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Reaps all dead children. Returns 1 if `pid` was among them.
static int reap(pid_t pid, int *status)
{
    int found = 0, any_status;
    pid_t reaped;

    while ((reaped = waitpid(-1, &any_status, WNOHANG)) > 0) {
        if (reaped == pid) {
            *status = any_status;
            found = 1;
        }
    }
    return found;
}

// Forwards available data of the two outputs.
static void forward_ready(struct pollfd fds[2], const char types[2])
{
    for (int i = 0; i < 2; i++) {
        if (fds[i].revents != 0 && !forward(types[i], fds[i].fd))
            fds[i].fd = -1;
    }
}

// Runs a shell line and sends its two outputs as frames of the given types.
// Background processes may keep the outputs open. When the shell has ended,
// what they have written so far is sent, and init does not wait for more.
static uint32_t run(char *line, char out_type, char err_type)
{
    char *argv[] = { "sh", "-c", line, NULL };
    const char types[2] = { out_type, err_type };
    struct pollfd fds[3];
    int pipes[2][2], status = 0, ended = 0;
    pid_t pid;

    for (int i = 0; i < 2; i++) {
        if (pipe2(pipes[i], O_CLOEXEC) < 0)
            say("pipe: %s", strerror(errno));
    }
    pid = spawn(argv, enter_pipes, pipes);
    for (int i = 0; i < 2; i++) {
        close(pipes[i][1]);
        fcntl(pipes[i][0], F_SETFL, O_NONBLOCK);
        fds[i] = (struct pollfd){ .fd = pipes[i][0], .events = POLLIN };
    }
    if (pid < 0)
        return 126;

    while (!ended) {
        wait_for_event(fds, 2);
        ended = reap(pid, &status);
        forward_ready(fds, types);
    }
    for (int i = 0; i < LAST_PIECES && poll(fds, 2, 0) > 0; i++)
        forward_ready(fds, types);
    close(pipes[0][0]);
    close(pipes[1][0]);
    return exit_code(status);
}

static char *read_run_file(void)
{
    FILE *file = fopen(RUN_FILE, "re");
    char *line = NULL;
    size_t room = 0;

    if (!file || getdelim(&line, &room, '\0', file) < 0)
        line = strdup("");
    if (file)
        fclose(file);
    return line;
}

// The mark at which tools/oracle stops counting: what follows depends on the
// host. It is an instruction without effect.
static void mark_end(void)
{
    __asm__ volatile("testl %0, %%eax" ::"i"(ORACLE_END) : "cc");
}

// Waits for the host's byte in a busy loop. In a machine whose time is counted
// in instructions (-icount), an idle second would pass before the host has run,
// and data still in transit to it would be lost.
static void wait_for_host(void)
{
    struct pollfd host = { .fd = link_fd, .events = POLLIN };
    struct timespec start, now;

    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        if (poll(&host, 1, 0) > 0)
            return;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec <= HOST_WAIT_S);
}

void run_command(void)
{
    unsigned char status[4];

    if (link_hello() < 0) {
        say("%s: %s", LINK, strerror(errno));
        return;
    }
    flock(link_fd, LOCK_EX); // keeps `send` from using the port
    frame_put_number(status, run(read_run_file(), 'O', 'E'), sizeof(status));
    if (access(GET_FILE, F_OK) == 0)
        run("tar -c -f - -C /out .", 'F', 'E');
    send('X', status, sizeof(status));
    send('Z', "", 0);
    mark_end();
    wait_for_host();
}
