// Creates home directories: the archive of the root file system contains files
// of root only.

#include "init.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOMES "/home/"

void make_homes(void)
{
    const struct passwd *user;

    mkdir("/home", 0755);
    while ((user = getpwent())) {
        if (strncmp(user->pw_dir, HOMES, strlen(HOMES)) != 0)
            continue;
        if ((mkdir(user->pw_dir, 0755) < 0 && errno != EEXIST) ||
            chown(user->pw_dir, user->pw_uid, user->pw_gid) < 0)
            say("%s: %s", user->pw_dir, strerror(errno));
    }
    endpwent();
}
