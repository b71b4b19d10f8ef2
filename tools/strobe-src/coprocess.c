#define _GNU_SOURCE // pipe2
#include "coprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_FOLDER 126
#define NOT_FOUND 127
#define KILLED 128

static _Noreturn void become(const char *const argv[], const char *folder,
                             int in, int out)
{
    if (folder && chdir(folder) < 0)
        _exit(NO_FOLDER);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    execvp(argv[0], (char *const *)argv);
    _exit(NOT_FOUND);
}

int coprocess_start(struct coprocess *c, const char *const argv[],
                    const char *folder)
{
    int in[2], out[2];

    *c = (struct coprocess){ 0 };
    if (pipe2(in, O_CLOEXEC) < 0)
        return -1;
    if (pipe2(out, O_CLOEXEC) < 0) {
        close(in[0]);
        close(in[1]);
        return -1;
    }
    fflush(NULL); // orders it before the child's errors
    c->pid = fork();
    if (c->pid == 0)
        become(argv, folder, in[0], out[1]);
    close(in[0]);
    close(out[1]);
    c->to = fdopen(in[1], "w");
    c->from = fdopen(out[0], "r");
    return c->pid > 0 && c->to && c->from ? 0 : -1;
}

int coprocess_end(struct coprocess *c)
{
    int status = 0;

    if (c->to)
        fclose(c->to);
    if (c->from)
        fclose(c->from);
    while (c->pid > 0 && waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        ;
    *c = (struct coprocess){ 0 };
    return WIFEXITED(status) ? WEXITSTATUS(status) : KILLED;
}
