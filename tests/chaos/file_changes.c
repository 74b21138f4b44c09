/* Counts a process's changes of files below a folder, and kills it or makes its writes fail at one
   of them. Preloaded: cc -shared -fPIC -o file_changes.so file_changes.c -ldl */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum action { COUNT, KILL, FULL_ONCE, FULL_FROM_NOW };

static char folder[4096];
static long changes, fatal;
static enum action action;

/* What happens from now on at the n-th change below the folder. */
void arm(const char *below, long nth, int what)
{
    snprintf(folder, sizeof folder, "%s", below);
    changes = 0;
    fatal = nth;
    action = what;
}

long changes_so_far(void) { return changes; }

/* Whether this change fails; SQLite's shared memory is no part of what a file says. */
static int fails(const char *path)
{
    if (!*folder || strncmp(path, folder, strlen(folder)) || strstr(path, "-shm")) return 0;
    changes++;
    if (action == KILL && changes == fatal) kill(getpid(), SIGKILL);
    if ((action == FULL_ONCE && changes == fatal) || (action == FULL_FROM_NOW && changes >= fatal)) {
        errno = ENOSPC;
        return 1;
    }
    return 0;
}

static int fails_at(int file)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return fails(path);
}

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define CHANGING_FILE(result, name, parameters, arguments) \
    result name parameters { NEXT(name); return fails_at(file) ? -1 : next arguments; }

CHANGING_FILE(ssize_t, write, (int file, const void *from, size_t size), (file, from, size))
CHANGING_FILE(ssize_t, pwrite, (int file, const void *from, size_t size, off_t at), (file, from, size, at))
CHANGING_FILE(ssize_t, pwrite64, (int file, const void *from, size_t size, off64_t at), (file, from, size, at))
CHANGING_FILE(int, fsync, (int file), (file))
CHANGING_FILE(int, fdatasync, (int file), (file))
CHANGING_FILE(int, ftruncate, (int file, off_t size), (file, size))
CHANGING_FILE(int, ftruncate64, (int file, off64_t size), (file, size))

int rename(const char *from, const char *to) { NEXT(rename); return fails(to) ? -1 : next(from, to); }
/* A full disk lets files be removed. */
int unlink(const char *path) { NEXT(unlink); if (action == KILL || action == COUNT) fails(path); return next(path); }
