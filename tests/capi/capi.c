/* Everything in fastdp.h once, on small arrays: each line is a name and its results, which test_capi.py compares with
 * Python's. Also what must fail, and several threads. */
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fastdp.h"

#define N 3000
#define CELLS 500
#define D 11
#define SEED 7

static int failures = 0;

static void must(int status, const char *what) {
    if (status != FASTDP_OK) {
        failures++;
        printf("FAILED %s: %d %s\n", what, status, fastdp_last_error());
    }
}

static void refused(const char *what, int status) { printf("refused %s: %d %s\n", what, status, fastdp_last_error()); }

static int64_t source(void) {
    int64_t rng = 0;
    must(fastdp_rng_seeded(SEED, &rng), "rng_seeded");
    return rng;
}

static void done(int64_t rng) { must(fastdp_rng_free(rng), "rng_free"); }

static void integers(const char *name, const int64_t *x, int64_t n) {
    printf("%s", name);
    for (int64_t i = 0; i < n; i++) printf(" %" PRId64, x[i]);
    printf("\n");
}

static void doubles(const char *name, const double *x, int64_t n) {
    printf("%s", name);
    for (int64_t i = 0; i < n; i++) printf(" %a", x[i]);
    printf("\n");
}

static double half_slope(double score, double label) { return 0.5 * (score - label); }

/* inputs: formulas that Python computes to the same bits */
static int64_t whole[N];
static double real[N], records[N * D], labels[N], w[D], weights[CELLS], shares[CELLS];
static uint8_t bits[N * D], marks[N], mask[CELLS];

static void fill(void) {
    for (int i = 0; i < N; i++) {
        whole[i] = (i * 37) % 1001 - 500;
        real[i] = whole[i] / 8.0;
        labels[i] = i % 3 == 0 ? 1.0 : -1.0;
        marks[i] = i % 3 == 0;
        for (int j = 0; j < D; j++) {
            records[i * D + j] = ((i * 13 + j * 7) % 64 - 32) / 64.0;
            bits[i * D + j] = (i * (j + 3)) % 5 < 2;
        }
    }
    for (int j = 0; j < D; j++) w[j] = (j - 5) / 16.0;
    for (int c = 0; c < CELLS; c++) {
        weights[c] = 1.0 + c % 4;
        shares[c] = (c % 9) / 8.0;
        mask[c] = c % 7 < 3 ? 1 + c % 5 : 0;
    }
}

static void noise_and_selection(void) {
    static int64_t out[N];
    static double real_out[N];
    static uint64_t words[N];
    int64_t chosen, rng;

#define SEEDED(call, what) rng = source(); must(call, what); done(rng)
    SEEDED(fastdp_random_words(rng, words, N), "random_words");
    integers("random_words", (const int64_t *)words, N);
    SEEDED(fastdp_laplace_i64(whole, N, 2.0, 0.5, rng, out), "laplace_i64");
    integers("laplace_i64", out, N);
    memcpy(out, whole, sizeof out);
    SEEDED(fastdp_laplace_i64(out, N, 2.0, 0.5, rng, out), "laplace_i64 in place");
    integers("laplace_i64_in_place", out, N);
    SEEDED(fastdp_laplace_f64(real, N, 2.0, 0.5, 0.0, rng, real_out), "laplace_f64");
    doubles("laplace_f64", real_out, N);
    SEEDED(fastdp_laplace_f64(real, N, 2.0, 0.5, 0.25, rng, real_out), "laplace_f64 on a grid");
    doubles("laplace_f64_on_grid", real_out, N);
    SEEDED(fastdp_gaussian_i64(whole, N, 2.0, 0.5, 1e-6, rng, out), "gaussian_i64");
    integers("gaussian_i64", out, N);
    SEEDED(fastdp_gaussian_f64(real, N, 2.0, 0.5, 1e-6, 0.0, rng, real_out), "gaussian_f64");
    doubles("gaussian_f64", real_out, N);
    SEEDED(fastdp_gaussian_zcdp_i64(whole, N, 2.0, 0.1, rng, out), "gaussian_zcdp_i64");
    integers("gaussian_zcdp_i64", out, N);
    SEEDED(fastdp_gaussian_zcdp_f64(real, N, 2.0, 0.1, 0.0, rng, real_out), "gaussian_zcdp_f64");
    doubles("gaussian_zcdp_f64", real_out, N);
    SEEDED(fastdp_exponential_mechanism_i64(whole, N, 1.0, 0.1, 0, rng, &chosen), "exponential_mechanism_i64");
    integers("exponential_mechanism_i64", &chosen, 1);
    SEEDED(fastdp_exponential_mechanism_f64(real, N, 1.0, 0.1, 1, rng, &chosen), "exponential_mechanism_f64");
    integers("exponential_mechanism_f64", &chosen, 1);
    SEEDED(fastdp_permute_and_flip_i64(whole, N, 1.0, 0.1, 0, rng, &chosen), "permute_and_flip_i64");
    integers("permute_and_flip_i64", &chosen, 1);
    SEEDED(fastdp_permute_and_flip_f64(real, N, 1.0, 0.1, 1, rng, &chosen), "permute_and_flip_f64");
    integers("permute_and_flip_f64", &chosen, 1);
    must(fastdp_laplace_i64(NULL, 0, 2.0, 0.5, 0, NULL), "no values at all");
}

static void everything_else(void) {
    static double x[CELLS];
    int64_t negatives[2 * D], positives[2 * D], sums[D];
    double value, total, point[D], low[D], high[D];

    must(fastdp_literal_counts(bits, marks, N, D, negatives, positives), "literal_counts");
    integers("literal_counts_negatives", negatives, 2 * D);
    integers("literal_counts_positives", positives, 2 * D);

    must(fastdp_weights_evaluate_mask(weights, CELLS, mask, 0.0, &value), "weights_evaluate_mask");
    doubles("weights_evaluate_mask", &value, 1);
    memcpy(x, weights, sizeof x);
    must(fastdp_weights_update_mask(x, CELLS, mask, 0.25, &total), "weights_update_mask");
    doubles("weights_update_mask", x, CELLS);
    must(fastdp_weights_evaluate_mask(x, CELLS, mask, total, &value), "weights_evaluate_mask with a total");
    doubles("weights_evaluate_mask_after", &value, 1);
    must(fastdp_weights_evaluate_values(weights, CELLS, shares, 0.0, &value), "weights_evaluate_values");
    doubles("weights_evaluate_values", &value, 1);
    memcpy(x, weights, sizeof x);
    must(fastdp_weights_update_values(x, CELLS, shares, -0.5, &total), "weights_update_values");
    doubles("weights_update_values", x, CELLS);
    for (int i = 0; i < 10; i++) must(fastdp_weights_update_values(x, CELLS, shares, 300.0, &total), "far updates");
    doubles("weights_far_total", &total, 1);

    for (int loss = FASTDP_SQUARED; loss <= FASTDP_ABSOLUTE_DEVIATION; loss++) {
        int plain = loss < FASTDP_SQUARED_DISTANCE;
        char name[32];
        snprintf(name, sizeof name, "gradient_sum_%d", loss);
        must(fastdp_gradient_sum(records, plain ? labels : NULL, N, D, w, loss, loss == FASTDP_HUBER ? 0.75 : 0.0,
                                 loss == FASTDP_CUSTOM ? half_slope : NULL, 0.5, 0x1p-30, sums), name);
        integers(name, sums, D);
    }

    for (int j = 0; j < D; j++) low[j] = -0.25 + j / 64.0, high[j] = 0.25 + j / 64.0;
#define MOVED(call, name) for (int j = 0; j < D; j++) point[j] = 3.0 * w[j]; must(call, name); doubles(name, point, D)
    MOVED(fastdp_project_ball(point, D, NULL, 0.5), "project_ball");
    MOVED(fastdp_project_ball(point, D, low, 0.5), "project_ball_at");
    MOVED(fastdp_project_ball_l1(point, D, NULL, 0.5), "project_ball_l1");
    MOVED(fastdp_project_box(point, D, low, high), "project_box");
    MOVED(fastdp_project_simplex(point, D, 1.0), "project_simplex");
}

static void raw_kernels(void) {
    const fastdp_kernel_table *k = fastdp_kernels();
    const uint32_t key[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    static int64_t out[N], undecided[N], counts[2 * D], sums[D];
    static double real_out[N], lengths[N], space[32], tail[32 * D + 8];
    static uint8_t tail_bits[64 * D + 64];
    static uint64_t words[N], columns[D * ((N + 63) / 64)], room[512], first[(N + 63) / 64], second[(N + 63) / 64];
    fastdp_laplace_plan laplace;
    fastdp_gaussian_plan gaussian;
    double padded[16] = {0}, x[CELLS], corner[D] = {0}, point[D], value;
    int64_t left, seen, W = (N + 63) / 64;

    if (k == NULL) {
        must(FASTDP_INTERNAL, "kernels");
        return;
    }
    if (k->version != FASTDP_VERSION || k->size != sizeof *k || !FASTDP_HAS(k, count_among)) must(FASTDP_INTERNAL, "table");
    if (fastdp_kernels() != k) must(FASTDP_INTERNAL, "the same table");
    k->words(key, 5, 100, N, words);
    integers("k_words", (const int64_t *)words, N);

    must(fastdp_plan_laplace_i64(2.0, 0.5, &laplace), "plan_laplace_i64");
    left = k->laplace_i64(whole, N, key, 0, &laplace, out, undecided);
    must(fastdp_settle_laplace_i64(key, 0, &laplace, out, N, undecided, left), "settle_laplace_i64");
    integers("k_laplace_i64", out, N);
    /* in two parts, the second of which begins with block 2; nothing decided, so that all is settled exactly */
    laplace.fixed = laplace.fixed_pair = 1e9;
    left = k->laplace_i64(whole, 2048, key, 0, &laplace, out, undecided);
    integers("k_laplace_left", &left, 1);
    must(fastdp_settle_laplace_i64(key, 0, &laplace, out, 2048, undecided, left), "settle part 1");
    left = k->laplace_i64(whole + 2048, N - 2048, key, 2, &laplace, out + 2048, undecided);
    must(fastdp_settle_laplace_i64(key, 2, &laplace, out + 2048, N - 2048, undecided, left), "settle part 2");
    integers("k_laplace_i64_settled", out, N);

    must(fastdp_plan_laplace_f64(N, 2.0, 0.5, 0.0, &laplace), "plan_laplace_f64");
    left = k->laplace_f64(real, N, key, 0, &laplace, real_out, undecided);
    must(fastdp_settle_laplace_f64(key, 0, &laplace, real_out, N, undecided, left), "settle_laplace_f64");
    doubles("k_laplace_f64", real_out, N);

    must(fastdp_plan_gaussian_i64(N, 2.0, 0.5, 1e-6, &gaussian), "plan_gaussian_i64");
    left = k->gaussian_i64(whole, N, key, 0, &gaussian, out, undecided);
    must(fastdp_settle_gaussian_i64(key, 0, &gaussian, out, N, undecided, left), "settle_gaussian_i64");
    integers("k_gaussian_i64", out, N);

    must(fastdp_plan_gaussian_f64(N, 2.0, 0.5, 1e-6, 0.0, &gaussian), "plan_gaussian_f64");
    left = k->gaussian_f64(real, N, key, 0, &gaussian, real_out, undecided);
    must(fastdp_settle_gaussian_f64(key, 0, &gaussian, real_out, N, undecided, left), "settle_gaussian_f64");
    doubles("k_gaussian_f64", real_out, N);

    value = k->sum_weights(weights, CELLS);
    doubles("k_sum_weights", &value, 1);
    value = k->evaluate_mask(weights, CELLS, mask); /* of whatever is not 0 */
    doubles("k_evaluate_mask", &value, 1);
    value = k->evaluate_values(weights, CELLS, shares);
    doubles("k_evaluate_values", &value, 1);
    memcpy(x, weights, sizeof x);
    value = k->update_mask(x, CELLS, mask, 2.0);
    doubles("k_update_mask", x, CELLS);
    value = k->update_values(x, CELLS, shares, 0.5);
    doubles("k_update_values", x, CELLS);

    seen = k->norms(records, N, D, lengths);
    integers("k_norms_finite", &seen, 1);
    memcpy(padded, w, sizeof w);
    memset(sums, 0, sizeof sums);
    k->sum_gradients(records, labels, lengths, N, D, padded, FASTDP_LOGISTIC, 0.0, NULL, 0x1p30,
                     0.5 * 0x1p30 * (1 - (D + 64) * 0x1p-53), tail, space, sums);
    integers("k_sum_gradients", sums, D);
    memset(sums, 0, sizeof sums);
    k->sum_gradients(records, labels, lengths, N, D, padded, FASTDP_CUSTOM, 0.0, half_slope, 0x1p30,
                     0.5 * 0x1p30 * (1 - (D + 64) * 0x1p-53), tail, space, sums);
    integers("k_sum_gradients_custom", sums, D);

    for (int j = 0; j < D; j++) point[j] = 3.0 * w[j];
    k->project(FASTDP_BALL, corner, corner, 0.5, point, D, tail);
    doubles("k_project", point, D);

    seen = k->pack_rows(bits, N, D, tail_bits, room, columns);
    integers("k_pack_rows_seen", &seen, 1);
    for (int i = 0; i < N; i++) {
        first[i / 64] |= (uint64_t)1 << (i % 64);
        second[i / 64] |= (uint64_t)marks[i] << (i % 64);
    }
    k->count_among(columns, D, W, first, second, counts);
    integers("k_count_among", counts, 2 * D);
}

static void wrong(void) {
    int64_t out[4] = {1, 2, 3, 4}, in[4] = {5, 6, 7, 8}, chosen = -9, rng;
    double real4[4] = {1, 2, NAN, 4}, out4[4] = {0}, value = -9, total, point[2] = {1, INFINITY}, one[2] = {0, 0};
    uint8_t odd[4] = {0, 1, 2, 0}, fine[4] = {0, 1, 0, 0};
    char *crooked = (char *)in + 1;
    fastdp_laplace_plan plan;

    refused("NULL", fastdp_laplace_i64(NULL, 4, 1, 1, 0, out));
    refused("NULL out", fastdp_laplace_i64(in, 4, 1, 1, 0, NULL));
    refused("negative length", fastdp_laplace_i64(in, -4, 1, 1, 0, out));
    refused("huge length", fastdp_laplace_i64(in, INT64_MAX, 1, 1, 0, out));
    refused("huge product", fastdp_literal_counts(fine, fine, (int64_t)1 << 47, (int64_t)1 << 47, in, out));
    refused("crooked", fastdp_laplace_i64((const int64_t *)crooked, 3, 1, 1, 0, out));
    refused("epsilon 0", fastdp_laplace_i64(in, 4, 1, 0, 0, out));
    refused("epsilon -1", fastdp_laplace_i64(in, 4, 1, -1, 0, out));
    refused("epsilon NaN", fastdp_laplace_i64(in, 4, 1, NAN, 0, out));
    refused("epsilon inf", fastdp_laplace_i64(in, 4, 1, INFINITY, 0, out));
    refused("sensitivity 0", fastdp_gaussian_i64(in, 4, 0, 1, 1e-6, 0, out));
    refused("delta 1", fastdp_gaussian_i64(in, 4, 1, 1, 1, 0, out));
    refused("rho -1", fastdp_gaussian_zcdp_i64(in, 4, 1, -1, 0, out));
    refused("scale", fastdp_laplace_i64(in, 4, 1e300, 1e-300, 0, out));
    refused("resolution 3", fastdp_laplace_f64(out4, 4, 1, 1, 3, 0, out4));
    refused("resolution NaN", fastdp_laplace_f64(out4, 4, 1, 1, NAN, 0, out4));
    refused("NaN value", fastdp_laplace_f64(real4, 4, 1, 1, 0, 0, out4));
    refused("rng", fastdp_laplace_i64(in, 4, 1, 1, 12345, out));
    refused("rng freed", fastdp_rng_free(12345));
    refused("NaN score", fastdp_exponential_mechanism_f64(real4, 4, 1, 1, 0, 0, &chosen));
    refused("no candidates", fastdp_exponential_mechanism_i64(in, 0, 1, 1, 0, 0, &chosen));
    refused("monotonic 2", fastdp_permute_and_flip_i64(in, 4, 1, 1, 2, 0, &chosen));
    refused("bits of 2", fastdp_literal_counts(odd, fine, 2, 2, in, out));
    refused("labels of 2", fastdp_literal_counts(fine, odd + 1, 2, 2, in, out));
    refused("no weight", fastdp_weights_evaluate_mask(out4, 4, fine, 0, &value));
    refused("NaN weight", fastdp_weights_evaluate_values(real4, 4, out4, 0, &value));
    refused("total -1", fastdp_weights_evaluate_mask(out4, 4, fine, -1, &value));
    refused("rate", fastdp_weights_update_mask(out4, 4, fine, 1e9, &total));
    refused("values beyond 1", fastdp_weights_update_values(out4, 4, real4, 0.5, &total));
    refused("loss 99", fastdp_gradient_sum(real4, real4, 2, 2, one, 99, 0, NULL, 1, 0.5, out));
    refused("custom NULL", fastdp_gradient_sum(real4, real4, 2, 2, one, FASTDP_CUSTOM, 0, NULL, 1, 0.5, out));
    refused("no labels", fastdp_gradient_sum(out4, NULL, 2, 2, one, FASTDP_SQUARED, 0, NULL, 1, 0.5, out));
    refused("NaN record", fastdp_gradient_sum(real4, out4, 2, 2, one, FASTDP_SQUARED, 0, NULL, 1, 0.5, out));
    refused("NaN w", fastdp_gradient_sum(out4, out4, 1, 2, real4 + 1, FASTDP_SQUARED, 0, NULL, 1, 0.5, out));
    refused("coarse", fastdp_gradient_sum(out4, out4, 2, 2, one, FASTDP_SQUARED, 0, NULL, 1, 2, out));
    refused("infinite point", fastdp_project_ball(point, 2, NULL, 1));
    refused("radius 0", fastdp_project_ball_l1(one, 2, NULL, 0));
    refused("box", fastdp_project_box(one, 2, point, one));
    refused("total NaN", fastdp_project_simplex(one, 2, NAN));
    must(fastdp_plan_laplace_i64(1, 1, &plan), "plan");
    refused("place", fastdp_settle_laplace_i64((const uint32_t *)in, 0, &plan, out, 4, (const int64_t[]){4}, 1));
    refused("block", fastdp_settle_laplace_i64((const uint32_t *)in, -1, &plan, out, 4, in, 0));
    plan.extra = NAN;
    refused("plan", fastdp_settle_laplace_i64((const uint32_t *)in, 0, &plan, out, 4, in, 0));
    must(fastdp_rng_seeded(-5, &rng), "a negative seed");
    must(fastdp_rng_free(rng), "rng_free");
    integers("untouched", out, 4);
    integers("not_chosen", &chosen, 1);
    doubles("not_evaluated", &value, 1);
}

/* --- threads: the first call of all comes from several at once, each with an error of its own */

static void *work(void *number) {
    int64_t id = (int64_t)(intptr_t)number, n = 200000, bad = 0;
    int64_t *x = calloc(n, sizeof *x);
    char wanted[64];
    for (int round = 0; round < 5; round++) {
        if (fastdp_laplace_i64(x, n, 1.0, 0.5, 0, x) != FASTDP_OK) bad++;
        if (fastdp_laplace_i64(x, n, 1.0, -1.0 - id, 0, x) != FASTDP_INVALID) bad++;
        snprintf(wanted, sizeof wanted, "epsilon=-%d.0: must be > 0 and finite", (int)id + 1);
        if (strcmp(fastdp_last_error(), wanted) != 0) bad++;
        if (fastdp_kernels() == NULL) bad++;
    }
    free(x);
    return (void *)(intptr_t)bad;
}

static void threads(void) {
    pthread_t thread[4];
    int64_t bad = 0;
    void *result;
    for (intptr_t i = 0; i < 4; i++) pthread_create(&thread[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], &result);
        bad += (intptr_t)result;
    }
    integers("threads_bad", &bad, 1);
}

static void mine(int number) { (void)number; }

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "all";
    struct sigaction before[32], after;

    if (strcmp(what, "one") == 0) { /* for hosts where the first call must fail */
        int64_t x = 3;
        int status = fastdp_laplace_i64(&x, 1, 1.0, 1.0, 0, &x);
        refused("start", status);
        if (fastdp_kernels() != NULL) must(FASTDP_INTERNAL, "no table");
        integers("left", &x, 1);
        return status == FASTDP_OK;
    }
    signal(SIGUSR1, mine);
    setlocale(LC_ALL, "C");
    for (int i = 1; i < 32; i++) sigaction(i, NULL, &before[i]);
    printf("last_error [%s]\n", fastdp_last_error());
    threads();
    for (int i = 1; i < 32; i++) {
        sigaction(i, NULL, &after);
        if (after.sa_handler != before[i].sa_handler) must(FASTDP_INTERNAL, "a signal handler changed");
    }
    printf("locale %s\n", setlocale(LC_ALL, NULL));
    fill();
    noise_and_selection();
    everything_else();
    raw_kernels();
    wrong();
    integers("failures", (const int64_t[]){failures}, 1);
    return failures;
}
