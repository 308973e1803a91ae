/* The passes over scores that everything else waits for; plain.py says the same in NumPy. */

/* The two headers that need no C library: what is made of this file needs nothing else at run time. */
#include <stddef.h>
#include <stdint.h>

/* A pass that gains by vectors is compiled for every width that a processor may have; `vectors` says which is the
   widest here, and compiled.py takes it. */
#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>

#define PASS(RETURN, NAME, ...)                                                                         \
    RETURN NAME##_any __VA_ARGS__                                                                       \
    __attribute__((target("avx2"))) RETURN NAME##_avx2 __VA_ARGS__                                      \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) RETURN NAME##_avx512 __VA_ARGS__

int vectors(void)
{
    const unsigned avx2 = 1u << 5, avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
    unsigned eax, ebx, ecx, edx, saved, unused;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & 1u << 27))
        return 0;
    /* of use only if the system saves them, too */
    __asm__("xgetbv" : "=a"(saved), "=d"(unused) : "c"(0));
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !(ebx & avx2) || (saved & 0x06) != 0x06)
        return 0;
    return (ebx & avx512) == avx512 && (saved & 0xe6) == 0xe6 ? 2 : 1;
}
#else
#define PASS(RETURN, NAME, ...) RETURN NAME##_any __VA_ARGS__

int vectors(void) { return 0; }
#endif

/* Scores at a time: they stay in the first-level cache while several loops look at them. */
#define BLOCK 512

static inline uint64_t bits_of(double score)
{
    uint64_t bits = ((union { double score; uint64_t bits; }){score}).bits;
    /* -0.0 compares equal to 0.0, and gets its bits; a sum would flush subnormal numbers where the processor does */
    return bits == (uint64_t)1 << 63 ? 0 : bits;
}

#define TURNED(BITS, BY) ((BITS) << (BY) | (BITS) >> (64 - (BY)))

/* xxhash64 of the eight bytes, seed 42: what Spark's SQL function gives for a double. */
static inline uint64_t mixed(uint64_t bits)
{
    const uint64_t first = 0x9E3779B185EBCA87u, second = 0xC2B2AE3D27D4EB4Fu, third = 0x165667B19E3779F9u,
                   fourth = 0x85EBCA77C2B2AE63u, fifth = 0x27D4EB2F165667C5u;
    bits *= second;
    bits = (42 + fifth + 8) ^ TURNED(bits, 31) * first;
    bits = TURNED(bits, 27) * first + fourth;
    bits = (bits ^ bits >> 33) * second;
    bits = (bits ^ bits >> 29) * third;
    return bits ^ bits >> 32;
}

/* The code of each score, and whether none is NaN. LANE is as wide as a score, so that both fill the same vectors. */
#define CODES(NAME, SCORE, LANE)                                                                        \
    PASS(int, NAME, (const SCORE *restrict scores, size_t n, SCORE low, SCORE high, int8_t below,       \
                     int8_t between, int8_t above, int8_t *restrict codes)                              \
    {                                                                                                   \
        LANE first = below, second = between, third = above, nan = 0;                                   \
        for (size_t i = 0; i < n; i++) {                                                                \
            SCORE score = scores[i];                                                                    \
            LANE code = score > low ? second : first;                                                   \
            codes[i] = (int8_t)(score > high ? third : code);                                           \
            nan |= score != score;                                                                      \
        }                                                                                               \
        return nan == 0;                                                                                \
    })

CODES(codes_float64, double, int64_t)
CODES(codes_float32, float, int32_t)

/* How many scores lie below and above, the sum for the digest, and the others themselves, NaN among them;
   `inside` has room for n. */
#define BRACKET(NAME, SCORE)                                                                            \
    PASS(size_t, NAME, (const SCORE *restrict scores, size_t n, SCORE low, SCORE high,                  \
                        SCORE *restrict inside, uint64_t *restrict sums)                                \
    {                                                                                                   \
        uint64_t below = 0, above = 0, sum = 0;                                                         \
        size_t found = 0;                                                                               \
        union { uint8_t hits[BLOCK]; uint64_t eights[BLOCK / 8 + 1]; } in;                              \
        for (size_t start = 0; start < n; start += BLOCK) {                                             \
            const SCORE *block = scores + start;                                                        \
            size_t size = n - start < BLOCK ? n - start : BLOCK;                                        \
            for (size_t i = 0; i < size; i++) {                                                         \
                below += block[i] < low;                                                                \
                above += block[i] > high;                                                               \
                sum += mixed(bits_of(block[i]));                                                        \
            }                                                                                           \
            in.eights[size / 8] = 0; /* the last eight may be fewer */                                  \
            for (size_t i = 0; i < size; i++)                                                           \
                in.hits[i] = !(block[i] < low) & !(block[i] > high);                                    \
            for (size_t i = 0; i < size; i += 8) {                                                      \
                uint64_t eight = in.eights[i / 8];                                                      \
                for (size_t j = i; eight && j < i + 8 && j < size; j++)                                 \
                    if (in.hits[j])                                                                     \
                        inside[found++] = block[j];                                                     \
            }                                                                                           \
        }                                                                                               \
        sums[0] += below;                                                                               \
        sums[1] += above;                                                                               \
        sums[2] += sum;                                                                                 \
        return found;                                                                                   \
    })

BRACKET(bracket_float64, double)
BRACKET(bracket_float32, float)

/* How many scores are less than a bound. */
#define COUNT(NAME, SCORE)                                                                              \
    PASS(size_t, NAME, (const SCORE *restrict scores, size_t n, SCORE bound)                            \
    {                                                                                                   \
        size_t count = 0;                                                                               \
        for (size_t start = 0; start < n; start += BLOCK) {                                             \
            uint32_t found = 0; /* narrow, so that as many fit a vector as scores do */                 \
            size_t end = n - start < BLOCK ? n : start + BLOCK;                                         \
            for (size_t i = start; i < end; i++)                                                        \
                found += scores[i] < bound;                                                             \
            count += found;                                                                             \
        }                                                                                               \
        return count;                                                                                   \
    })

COUNT(count_float64, double)
COUNT(count_float32, float)

/* The sum for the digest. */
#define MIX(NAME, SCORE)                                                                                \
    PASS(uint64_t, NAME, (const SCORE *restrict scores, size_t n)                                       \
    {                                                                                                   \
        uint64_t sum = 0;                                                                               \
        for (size_t i = 0; i < n; i++)                                                                  \
            sum += mixed(bits_of(scores[i]));                                                           \
        return sum;                                                                                     \
    })

MIX(mix_float64, double)
MIX(mix_float32, float)

/* Adds each score to the counter of its 16 leading bits; returns the sum for the digest. */
uint64_t count_leading(const double *restrict scores, size_t n, int64_t *restrict counts)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = bits_of(scores[i]);
        counts[bits >> 48]++;
        sum += mixed(bits);
    }
    return sum;
}

/* Writes each score to one of two places; both have room for one more than they get. */
void divide(const double *restrict scores, const uint8_t *restrict marks, size_t n,
            double *restrict unmarked, double *restrict marked)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        unmarked[i - found] = scores[i];
        marked[found] = scores[i];
        found += marks[i] != 0;
    }
}
