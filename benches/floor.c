/* The floor for spawns: what the machine itself needs for the same work.
 *
 *     floor PARALLEL PAYLOAD_BYTES PROGRAM [ARGUMENT ...]
 *
 * For each byte on standard input one round is run and its nanoseconds are printed on
 * a line: PARALLEL children at once, three pipes each, PAYLOAD_BYTES written to each
 * one's stdin, stdout and stderr read to their ends, all of them reaped. Nothing is
 * limited, timed out, decoded or kept: no hook system can do less.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_CHILDREN 256
#define READ_SIZE 65536

extern char **environ;

struct child {
    pid_t pid;
    int in, out, err;
    size_t written;
};

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void open_pipe(int ends[2]) {
    if (pipe2(ends, O_CLOEXEC) != 0)
        fail("pipe2");
}

static void start(struct child *child, char **argv) {
    int in[2], out[2], err[2];
    posix_spawn_file_actions_t actions;
    open_pipe(in);
    open_pipe(out);
    open_pipe(err);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    errno = posix_spawnp(&child->pid, argv[0], &actions, NULL, argv, environ);
    if (errno != 0)
        fail(argv[0]);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    close(err[1]);
    child->in = in[1];
    child->out = out[0];
    child->err = err[0];
    child->written = 0;
    fcntl(child->in, F_SETFL, O_NONBLOCK);
}

static int feed(struct child *child, const char *payload, size_t size) {
    if (child->written < size) {
        ssize_t n = write(child->in, payload + child->written, size - child->written);
        if (n < 0 && errno == EAGAIN)
            return 0;
        child->written = n < 0 ? size : child->written + (size_t)n;
    }
    if (child->written < size)
        return 0;
    close(child->in);
    child->in = -1;
    return 1;
}

static int take(int *fd) {
    static char buffer[READ_SIZE];
    if (read(*fd, buffer, sizeof buffer) > 0)
        return 0;
    close(*fd);
    *fd = -1;
    return 1;
}

static void serve(struct child *children, int count, const char *payload, size_t size) {
    struct pollfd polled[3 * MAX_CHILDREN];
    int open = 0;
    for (int i = 0; i < count; i++)
        open += 3 - feed(&children[i], payload, size);
    while (open > 0) {
        for (int i = 0; i < count; i++) {
            polled[3 * i] = (struct pollfd){children[i].in, POLLOUT, 0};
            polled[3 * i + 1] = (struct pollfd){children[i].out, POLLIN, 0};
            polled[3 * i + 2] = (struct pollfd){children[i].err, POLLIN, 0};
        }
        poll(polled, 3 * (nfds_t)count, -1);
        for (int i = 0; i < count; i++) {
            if (polled[3 * i].revents)
                open -= feed(&children[i], payload, size);
            if (polled[3 * i + 1].revents)
                open -= take(&children[i].out);
            if (polled[3 * i + 2].revents)
                open -= take(&children[i].err);
        }
    }
}

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
    struct child children[MAX_CHILDREN];
    char go;
    if (argc < 4)
        return 2;
    int count = atoi(argv[1]);
    size_t size = strtoull(argv[2], NULL, 10);
    if (count < 1 || count > MAX_CHILDREN)
        return 2;
    char *payload = malloc(size + 1);
    memset(payload, 'x', size);
    signal(SIGPIPE, SIG_IGN);
    while (read(0, &go, 1) == 1) {
        long long started = now();
        for (int i = 0; i < count; i++)
            start(&children[i], argv + 3);
        serve(children, count, payload, size);
        for (int i = 0; i < count; i++)
            waitpid(children[i].pid, NULL, 0);
        printf("%lld\n", now() - started);
        fflush(stdout);
    }
    free(payload);
    return 0;
}
