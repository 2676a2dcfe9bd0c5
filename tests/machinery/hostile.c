/* Hostile calls of everything in fastdp.h, for sanitize.py, which writes `calls.h`: one function for each of the
 * header's, with arguments that a C caller may pass, or that it may get wrong: NULL, misaligned, NaN, lengths that no
 * array has.
 *
 * Every array ends where a page begins that nobody may touch, and what is only read is write-protected: code that was
 * compiled in memory, which no sanitizer sees, dies there. A refused call must have changed no array.
 *
 * hostile SEED CALLS
 */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fastdp.h"

#define PAGE 4096
#define MANY(a) (sizeof(a) / sizeof *(a))

static uint64_t state;
static char last[2000]; /* the call that runs now */
static long failures, statuses[8];

static uint64_t word(void) { /* splitmix64 */
    uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static int64_t below(int64_t n) { return (int64_t)(word() % (uint64_t)n); }
static int once_in(int n) { return below(n) == 0; }

static void say(const char *format, ...) {
    size_t at = strlen(last);
    va_list rest;
    va_start(rest, format);
    vsnprintf(last + at, sizeof last - at, format, rest);
    va_end(rest);
}

static void failed(const char *what) {
    failures++;
    printf("FAILED %s: %s: %s\n", what, last, fastdp_last_error());
}

/* --- arrays */

typedef struct { char *map, *data, *copy; size_t room, bytes; int written; } array;
static array arrays[16];
static int used;

static void *make(size_t bytes, int shift) {
    size_t room = (bytes + (size_t)shift + PAGE - 1) / PAGE * PAGE + PAGE;
    array *a = &arrays[used++];
    a->map = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (a->map == MAP_FAILED) abort();
    mprotect(a->map + room - PAGE, PAGE, PROT_NONE);
    a->room = room;
    a->bytes = bytes;
    a->copy = NULL;
    a->written = 1;
    a->data = a->map + room - PAGE - bytes - (size_t)shift;
    return a->data;
}

static void seal(int written) { /* the array that was made and filled last */
    array *a = &arrays[used - 1];
    a->written = written;
    a->copy = malloc(a->bytes + 1);
    memcpy(a->copy, a->data, a->bytes);
    if (!written) mprotect(a->map, a->room - PAGE, PROT_READ);
}

static void release(void) {
    while (used > 0) {
        array *a = &arrays[--used];
        munmap(a->map, a->room);
        free(a->copy);
    }
}

static int changed(void) {
    for (int i = 0; i < used; i++)
        if (arrays[i].bytes && memcmp(arrays[i].data, arrays[i].copy, arrays[i].bytes)) return 1;
    return 0;
}

/* --- numbers */

static double a_double(void) {
    static const double strange[] = {
        0.0, -0.0, 1e-320, 1e-300, 0x1p-20, 0x1p-19, 0.5, 0x1p30, 0x1p40, 0x1p41, 1e20, 0x1p400, 1e308, -1.0, -1e308, INFINITY,
        -INFINITY, NAN,
    };
    if (once_in(4)) return strange[below(MANY(strange))];
    return (double)(below(4000) + 1) / 1000.0;
}

static double a_small(void) { /* an entry of an array that is mostly fine */
    if (once_in(400)) return a_double();
    return (double)(below(2001) - 1000) / 1024.0;
}

static double a_share(void) { return once_in(300) ? a_double() : (double)below(1025) / 1024.0; }

static int64_t an_int64_t(void) {
    static const int64_t strange[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX, INT64_MAX - 1, -1, 1LL << 62, 1LL << 53};
    return once_in(50) ? strange[below(MANY(strange))] : below(2001) - 1000;
}

static int an_int(void) {
    static const int strange[] = {INT_MIN, INT_MAX, -1, 100};
    return once_in(8) ? strange[below(MANY(strange))] : (int)below(9);
}

static int64_t a_length(void) {
    static const int64_t lengths[] = {0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 257};
    if (once_in(40)) return 1023 + below(3);
    if (once_in(80)) return 2047 + below(300);
    return lengths[below(MANY(lengths))];
}

static int64_t no_length(void) { /* refused before anything is read */
    static const int64_t strange[] = {-1, -8, INT64_MIN, INT64_MAX, (1LL << 48) + 1, 1LL << 62};
    return strange[below(MANY(strange))];
}

static int64_t a_source(void) {
    int64_t rng = 0;
    if (once_in(8)) return an_int64_t();
    if (once_in(4) && fastdp_rng_seeded(7, &rng) != FASTDP_OK) failed("rng_seeded");
    return rng;
}

static double slope(double score, double label) { return score - label; }
static double steep(double score, double label) { return label > score ? NAN : 1e300 * score; }
static fastdp_derivative a_derivative(void) { return once_in(2) ? NULL : once_in(2) ? slope : steep; }

static uint8_t a_bit(void) { return once_in(500) ? (uint8_t)word() : (uint8_t)below(2); }

static void fill_plan(double *plan, int count, int laplace) {
    int status, garbage = once_in(3);
    if (laplace)
        status = fastdp_plan_laplace_f64(100, a_double(), a_double(), 0.0, (fastdp_laplace_plan *)plan);
    else
        status = fastdp_plan_gaussian_f64(100, a_double(), a_double(), 1e-6, 0.0, (fastdp_gaussian_plan *)plan);
    if (status == FASTDP_OK && once_in(2)) plan[laplace ? 6 : 2] = 0.0; /* of integers */
    for (int i = 0; i < count; i++)
        if (garbage || status != FASTDP_OK) plan[i] = a_double();
}

/* --- what follows a call */

static void judge(int status, int may_change) {
    if (status < 0 || status > 7) {
        failed("no such status");
    } else {
        statuses[status]++;
        if (status == FASTDP_INTERNAL || status == FASTDP_START || status == FASTDP_MEMORY) failed("status");
        if (status != FASTDP_OK && !fastdp_last_error()[0]) failed("no message");
        if ((status == FASTDP_INVALID || (status == FASTDP_DOMAIN && !may_change)) && changed())
            failed("refused, and changed an array");
    }
    release();
}

#include "calls.h"

/* --- the raw kernels, called as they must be: they check nothing */

static double *doubles(int64_t n, double (*draw)(void), int written) {
    double *x = make((size_t)n * sizeof *x, 0);
    for (int64_t i = 0; i < n; i++) x[i] = draw();
    seal(written);
    return x;
}

static double zero(void) { return 0.0; }
static double tame(void) { return (double)(below(2001) - 1000) / 1024.0; }
static double weight(void) { return (double)(1 + below(1000)) / 256.0; }

static void *bytes_of(int64_t bytes, int written) {
    uint8_t *x = make((size_t)bytes, 0);
    for (int64_t i = 0; i < bytes; i++) x[i] = (uint8_t)word();
    seal(written);
    return x;
}

static uint8_t *bits_of(int64_t n) {
    uint8_t *x = make((size_t)n, 0);
    for (int64_t i = 0; i < n; i++) x[i] = (uint8_t)below(2);
    seal(0);
    return x;
}

static void raw_noise(const fastdp_kernel_table *k) {
    static const double scales[] = {0.5, 3.0, 1e6, 1e9};
    double scale = scales[below(MANY(scales))];
    int64_t n = a_length(), block = once_in(3) ? below(1LL << 40) : below(3);
    uint32_t *key = bytes_of(32, 0);
    int64_t *undecided = bytes_of(8 * n, 1), *whole = bytes_of(8 * n, 0), *out = bytes_of(8 * n, 1);
    double *real = doubles(n, tame, 0), *real_out = doubles(n, tame, 1);
    fastdp_laplace_plan *laplace = make(sizeof *laplace, 0);
    if (fastdp_plan_laplace_i64(scale, 1.0, laplace)) failed("plan");
    k->laplace_i64(whole, n, key, block, laplace, out, undecided);
    if (fastdp_plan_laplace_f64(n, scale, 1.0, 0.0, laplace)) failed("plan");
    k->laplace_f64(real, n, key, block, laplace, real_out, undecided);
    fastdp_gaussian_plan *gaussian = make(sizeof *gaussian, 0);
    if (fastdp_plan_gaussian_i64(n, scale, 1.0, 1e-6, gaussian)) failed("plan");
    k->gaussian_i64(whole, n, key, block, gaussian, out, undecided);
    if (fastdp_plan_gaussian_f64(n, scale, 1.0, 1e-6, 0.0, gaussian)) failed("plan");
    k->gaussian_f64(real, n, key, block, gaussian, real_out, undecided);
    k->words(key, word(), below(1LL << 62), n, bytes_of(8 * n, 1));
}

static void raw_weights(const fastdp_kernel_table *k) {
    int64_t cells = 1 + a_length();
    double *x = doubles(cells, weight, 1), *values = doubles(cells, tame, 0);
    uint8_t *mask = bytes_of(cells, 0);
    double sum = k->sum_weights(x, cells) + k->evaluate_mask(x, cells, mask) + k->evaluate_values(x, cells, values);
    sum += k->update_mask(x, cells, mask, 1.5) + k->update_values(x, cells, values, 2.0);
    if (!isfinite(sum)) failed("a sum of weights");
}

static void raw_records(const fastdp_kernel_table *k) {
    int64_t n = a_length(), d = 1 + below(20), D = (d + 7) / 8 * 8;
    double *points = doubles(n * d, tame, 0), *labels = doubles(n, tame, 0), *lengths = doubles(n, zero, 1);
    double *w = make((size_t)D * sizeof *w, 0);
    for (int64_t j = 0; j < D; j++) w[j] = j < d ? tame() : 0.0;
    seal(0);
    if (k->norms(points, n, d, lengths)) failed("norms");
    double *tail = doubles(32 * d + 8, zero, 1), *space = doubles(2 * D, zero, 1);
    int64_t *out = make((size_t)d * sizeof *out, 0);
    memset(out, 0, (size_t)d * sizeof *out);
    seal(1);
    k->sum_gradients(points, labels, lengths, n, d, w, FASTDP_SQUARED, 0.0, NULL, 0x1p20, 0x1p19, tail, space, out);
    double *a = doubles(d, zero, 0), *b = doubles(d, weight, 0), *point = doubles(d, tame, 1);
    static const int sets[] = {FASTDP_BALL, FASTDP_BALL_L1, FASTDP_BOX, FASTDP_SIMPLEX};
    k->project(sets[below(4)], a, b, 0.5, point, d, doubles(d, zero, 1));
}

static void raw_bits(const fastdp_kernel_table *k) {
    int64_t n = a_length(), d = 1 + below(130), words = (n + 63) / 64, wide = (d + 63) / 64;
    uint8_t *rows = bits_of(n * d), *tail = make((size_t)(64 * d + 64), 0);
    memset(tail, 0, (size_t)(64 * d + 64));
    seal(1);
    uint64_t *space = bytes_of(8 * 512 * wide, 1), *columns = bytes_of(8 * d * words, 1);
    if (k->pack_rows(rows, n, d, tail, space, columns) > 1) failed("pack_rows");
    uint64_t *first = bytes_of(8 * words, 0), *second = bytes_of(8 * words, 0);
    int64_t *counts = bytes_of(16 * d, 1);
    memset(counts, 0, (size_t)(16 * d));
    k->count_among(columns, d, words, first, second, counts);
}

static void died(int number) {
    (void)!write(1, "DIED ", 5);
    (void)!write(1, last, strlen(last));
    (void)!write(1, "\n", 1);
    signal(number, SIG_DFL);
    raise(number);
}

int main(int count, char **arguments) {
    static void (*const raw[])(const fastdp_kernel_table *) = {raw_noise, raw_weights, raw_records, raw_bits};
    if (count != 3) return 2;
    state = strtoull(arguments[1], NULL, 10);
    signal(SIGABRT, died);
    signal(SIGSEGV, died);
    signal(SIGBUS, died);
    signal(SIGFPE, died);
    signal(SIGILL, died);
    const fastdp_kernel_table *table = fastdp_kernels();
    if (table == NULL) failed("fastdp_kernels");
    long calls = strtol(arguments[2], NULL, 10);
    for (long i = 0; i < calls && failures < 20; i++) {
        last[0] = 0;
        if (table != NULL && once_in(4)) {
            int which = (int)below(MANY(raw));
            say("raw kernels, %d", which);
            raw[which](table);
            release();
        } else {
            hostile_calls[below(MANY(hostile_calls))]();
        }
    }
    printf("%ld calls, of which done %ld, refused %ld, outside the domain %ld\n", calls, statuses[FASTDP_OK],
           statuses[FASTDP_INVALID], statuses[FASTDP_DOMAIN]);
    return failures != 0;
}
