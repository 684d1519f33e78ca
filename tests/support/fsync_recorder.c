/* Preloaded into the broker: notes, for each file, how many of its bytes a sync has really put on the disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int noted(const char *name, int fd) {
    int (*sync_file)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    struct stat before;
    int known = fstat(fd, &before), done = sync_file(fd);
    const char *path = getenv("FSYNC_RECORD");
    if (done == 0 && known == 0 && path != NULL) {
        char line[64];
        int length = snprintf(line, sizeof line, "%llu %llu\n", (unsigned long long)before.st_ino,
                              (unsigned long long)before.st_size);
        int record = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
        if (record < 0 || write(record, line, length) != length) abort();
        close(record);
    }
    return done;
}

int fsync(int fd) { return noted("fsync", fd); }
int fdatasync(int fd) { return noted("fdatasync", fd); }
