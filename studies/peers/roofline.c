/* What the processor can do: plain loops, compiled on demand by studies.peers.roofline. */

#include <stdint.h>

typedef float real;

/* With -DFACTORS=64 the compiler knows the length of every row, and can do more about it. */
#ifdef FACTORS
#define ROW_LENGTH FACTORS
#else
#define ROW_LENGTH n_factors
#endif

real dot(int64_t n, int64_t rounds, const real *restrict a, const real *restrict b) {
    real total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        real sum = 0;
        for (int64_t k = 0; k < n; k++) sum += a[k] * b[k];
        total += sum;
        /* Or the compiler would do the sum once and multiply. */
        __asm__ volatile("" : : "r"(a), "r"(b) : "memory");
    }
    return total;
}

void axpy(int64_t n, int64_t rounds, real scale, const real *restrict a, real *restrict b) {
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t k = 0; k < n; k++) b[k] += scale * a[k];
        __asm__ volatile("" : : "r"(a), "r"(b) : "memory");
    }
}

/* The derivative of the smooth hinge at sign * score, times the sign. */
static inline real weight_of(real score, int8_t sign) {
    real margin = sign * score;
    real slope = margin <= 0 ? -1 : margin < 1 ? margin - 1 : 0;
    return sign * slope;
}

static inline void clear(int64_t n, real *restrict a) {
    for (int64_t k = 0; k < n; k++) a[k] = 0;
}

/* One pass: every rating's score, then its part of both gradients.  6 d operations a rating. */
void one_pass(int64_t n_users, int64_t n_items, int64_t n_factors, const int64_t *restrict indptr,
              const int32_t *restrict items, const int8_t *restrict signs,
              const real *restrict U, const real *restrict V, real *restrict GU,
              real *restrict GV) {
    const int64_t d = ROW_LENGTH;
    clear(n_users * d, GU);
    clear(n_items * d, GV);
    for (int64_t i = 0; i < n_users; i++) {
        const real *restrict u = U + i * d;
        real *restrict gu = GU + i * d;
        for (int64_t k = indptr[i]; k < indptr[i + 1]; k++) {
            const real *restrict v = V + items[k] * d;
            real *restrict gv = GV + items[k] * d;
            real score = 0;
            for (int64_t p = 0; p < d; p++) score += u[p] * v[p];
            real weight = weight_of(score, signs[k]);
            for (int64_t p = 0; p < d; p++) {
                gu[p] += weight * v[p];
                gv[p] += weight * u[p];
            }
        }
    }
}

static void accumulate(int64_t n_rows, int64_t n_factors, const int64_t *restrict indptr,
                       const int32_t *restrict columns, const int32_t *restrict order,
                       const real *restrict weights, const real *restrict F, real *restrict G) {
    const int64_t d = ROW_LENGTH;
    clear(n_rows * d, G);
    for (int64_t i = 0; i < n_rows; i++) {
        real *restrict g = G + i * d;
        for (int64_t k = indptr[i]; k < indptr[i + 1]; k++) {
            const real *restrict f = F + columns[k] * d;
            real weight = weights[order ? order[k] : k];
            for (int64_t p = 0; p < d; p++) g[p] += weight * f[p];
        }
    }
}

/* Three passes: scores and weights, the users' gradient, and from the columns the items'. */
void three_passes(int64_t n_users, int64_t n_items, int64_t n_factors, const int64_t *restrict indptr,
                  const int32_t *restrict items, const int8_t *restrict signs,
                  const int64_t *restrict item_indptr, const int32_t *restrict users,
                  const int32_t *restrict item_order, const real *restrict U,
                  const real *restrict V, real *restrict GU, real *restrict GV,
                  real *restrict weights) {
    const int64_t d = ROW_LENGTH;
    for (int64_t i = 0; i < n_users; i++) {
        const real *restrict u = U + i * d;
        for (int64_t k = indptr[i]; k < indptr[i + 1]; k++) {
            const real *restrict v = V + items[k] * d;
            real score = 0;
            for (int64_t p = 0; p < d; p++) score += u[p] * v[p];
            weights[k] = weight_of(score, signs[k]);
        }
    }
    accumulate(n_users, d, indptr, items, 0, weights, V, GU);
    accumulate(n_items, d, item_indptr, users, item_order, weights, U, GV);
}
