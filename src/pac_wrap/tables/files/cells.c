/* The rows of a CSV that are beyond doubt, and how the cells of each column are spelled; cells.py says the rest. */

/* The two headers that need no C library: what is made of this file needs nothing else at run time. */
#include <stddef.h>
#include <stdint.h>

/* what a column has: cells that are not empty, that are no whole numbers, that are no plain numbers */
enum { FILLED = 1, NOT_WHOLE = 2, NOT_PLAIN = 4 };
/* what is counted: rows, empty lines, line ends of both kinds, quoted cells, cells with line breaks, rows in doubt */
enum { ROWS, BLANK, LF, CRLF, QUOTED, BROKEN, DOUBT };

static inline const uint8_t *digits(const uint8_t *at)
{
    while ((uint8_t)(*at - '0') < 10)
        at++;
    return at;
}

/* How a cell is spelled whose number, if it is one, ends at `*at`; a text ends with a byte that is part of no number.
   Whole: -?(0|[1-9][0-9]{0,17}). Plain: -?(0|[1-9][0-9]{0,16})([.][0-9]+)?(e[+-]?[0-9]{1,2})? */
static inline unsigned spelling(const uint8_t **at)
{
    const uint8_t *start = *at + (**at == '-'), *end = digits(start);
    size_t n = (size_t)(end - start);
    unsigned kind = FILLED | (n > 18 ? NOT_WHOLE : 0) | (n > 17 ? NOT_PLAIN : 0);
    *at = end;
    if (n == 0 || (n > 1 && *start == '0'))
        return FILLED | NOT_WHOLE | NOT_PLAIN;
    if (*end == '.') {
        const uint8_t *fraction = end + 1;
        *at = end = digits(fraction);
        kind |= NOT_WHOLE | (end == fraction ? NOT_PLAIN : 0);
    }
    if (*end == 'e') {
        const uint8_t *exponent = end + 1 + (end[1] == '+' || end[1] == '-');
        *at = end = digits(exponent);
        kind |= NOT_WHOLE | (end == exponent || end - exponent > 2 ? NOT_PLAIN : 0);
    }
    return kind;
}

/* Looks at rows of `width` cells; `text` holds whole lines, so its last byte is a line feed. Adds to what each column
   has and to the counts, and returns the bytes of the rows looked at: fewer than `n` if the next row has no end here,
   or is in doubt. A quote stands around a cell or, twice, in a quoted one. One that stands elsewhere, a carriage
   return that ends no line, a NUL and another number of cells are doubt. `stops` has a 1 for each byte at which a cell
   without quotes stops, good or bad: the delimiter, LF, CR, the quote and NUL. */
size_t look_at_rows(const uint8_t *restrict text, size_t n, uint8_t delimiter, const uint8_t *restrict stops,
                    size_t width, uint8_t *restrict columns, uint64_t *restrict counts)
{
    const uint8_t *at = text, *end = text + n, *row = text;
    while (at < end) {
        uint64_t quoted = 0, broken = 0;
        row = at;
        if (width > 1 && (*at == '\n' || (*at == '\r' && at[1] == '\n'))) {
            counts[*at == '\n' ? LF : CRLF]++;
            counts[BLANK]++;
            at += *at == '\n' ? 1 : 2;
            continue;
        }
        for (size_t column = 0;; column++) {
            unsigned kind = 0;
            if (column == width)
                goto doubt;
            if (*at == '"') {
                unsigned lines = 0;
                if (*++at != '"') {
                    kind = spelling(&at);
                    kind |= *at != '"' ? NOT_WHOLE | NOT_PLAIN : 0;
                }
                for (;; at++) {
                    if (at >= end)
                        return (size_t)(row - text);
                    if (*at == '"') {
                        if (at[1] != '"')
                            break;
                        at++;
                        kind = FILLED | NOT_WHOLE | NOT_PLAIN;
                    } else if (*at == 0)
                        goto doubt;
                    lines |= *at == '\n' || *at == '\r';
                }
                at++;
                quoted++;
                broken += lines;
            } else if (!stops[*at]) {
                kind = spelling(&at);
                kind |= !stops[*at] ? NOT_WHOLE | NOT_PLAIN : 0;
                while (!stops[*at])
                    at++;
            }
            columns[column] |= (uint8_t)kind;
            if (*at == delimiter) {
                at++;
                continue;
            }
            if (column + 1 != width)
                goto doubt;
            break;
        }
        if (*at == '\n') {
            counts[LF]++;
            at++;
        } else if (*at == '\r' && at[1] == '\n') {
            counts[CRLF]++;
            at += 2;
        } else
            goto doubt;
        counts[ROWS]++;
        counts[QUOTED] += quoted;
        counts[BROKEN] += broken;
    }
    return n;
doubt:
    counts[DOUBT]++;
    return (size_t)(row - text);
}

/* 5 to the power of 0 to 27: all that 64 bits hold */
static const uint64_t FIVES[] = {
    1ULL, 5ULL, 25ULL, 125ULL, 625ULL, 3125ULL, 15625ULL, 78125ULL, 390625ULL, 1953125ULL, 9765625ULL,
    48828125ULL, 244140625ULL, 1220703125ULL, 6103515625ULL, 30517578125ULL, 152587890625ULL, 762939453125ULL,
    3814697265625ULL, 19073486328125ULL, 95367431640625ULL, 476837158203125ULL, 2384185791015625ULL,
    11920928955078125ULL, 59604644775390625ULL, 298023223876953125ULL, 1490116119384765625ULL,
    7450580596923828125ULL};

/* The quotient of high * 2^64 and a divisor whose highest bit is set and that exceeds high, and the remainder:
   schoolbook division by halves (Knuth, The Art of Computer Programming, 4.3.1), since 128 bits need a library. */
static inline uint64_t divided(uint64_t high, uint64_t low, uint64_t divisor, uint64_t *remainder)
{
    const uint64_t half = 1ULL << 32, top = divisor >> 32, bottom = divisor & (half - 1);
    uint64_t digits[2], rest = high;
    for (int i = 0; i < 2; i++) {
        uint64_t next = i == 0 ? low >> 32 : low & (half - 1);
        uint64_t digit = rest / top, over = rest % top;
        while (digit >= half || digit * bottom > (over << 32 | next)) {
            digit--;
            over += top;
            if (over >= half)
                break;
        }
        rest = (rest << 32 | next) - digit * divisor;
        digits[i] = digit;
    }
    *remainder = rest;
    return digits[0] << 32 | digits[1];
}

/* Whether a cell is a number that is spelled in digits, with a point, a sign and an exponent or without, and then the
   bits of the double nearest to it, of two the even one: from whole numbers alone, so that nothing is rounded before.
   Of more than 19 digits, or powers of ten beyond those above, nothing is said. */
static inline int is_number(const uint8_t *at, const uint8_t *end, uint64_t *bits)
{
    uint64_t whole = 0, sign = 0, quotient, remainder, kept, five;
    int used = 0, seen = 0, power = 0, point = 0, shift, exponent;
    if (at < end && (*at == '-' || *at == '+'))
        sign = (uint64_t)(*at++ == '-') << 63;
    for (; at < end; at++) {
        unsigned digit = (unsigned)*at - '0';
        if (*at == '.' && !point) {
            point = 1;
            continue;
        }
        if (digit > 9)
            break;
        seen = 1;
        used += used || digit;
        if (used > 19)
            return 0;
        whole = whole * 10 + digit;
        power -= point;
    }
    if (!seen)
        return 0;
    if (at < end) {
        int minus = 0, size = 0, count = 0;
        if (*at != 'e' && *at != 'E')
            return 0;
        at++;
        if (at < end && (*at == '-' || *at == '+'))
            minus = *at++ == '-';
        for (; at < end && (unsigned)*at - '0' < 10 && count < 4; at++, count++)
            size = size * 10 + (*at - '0');
        if (at < end || !count)
            return 0;
        power += minus ? -size : size;
    }
    *bits = sign;
    if (whole == 0)
        return 1;
    for (; power > 0; power--) {
        if (whole > UINT64_MAX / 10)
            return 0;
        whole *= 10;
    }
    if (power < -27)
        return 0;
    /* whole / 10^-power = (whole / five) * 2^power, both brought to 64 bits; the quotient has 64 as well */
    five = FIVES[-power];
    shift = __builtin_clzll(five) - __builtin_clzll(whole);
    whole <<= __builtin_clzll(whole);
    five <<= __builtin_clzll(five);
    exponent = shift + power - 63 - (whole < five);
    quotient = whole < five ? divided(whole, 0, five, &remainder) : divided(whole >> 1, whole << 63, five, &remainder);
    kept = quotient >> 11;
    quotient &= 0x7ff;
    kept += quotient > 0x400 || (quotient == 0x400 && (remainder != 0 || (kept & 1)));
    /* the hidden bit adds 1 to the exponent, and so does a carry */
    *bits |= ((uint64_t)(exponent + 11 + 52 + 1022) << 52) + kept;
    return 1;
}

/* Reads the scores, in the column `place`, of rows of `width` cells in which no quote and no carriage return stands;
   `text` holds whole lines. Returns how many rows there are, or SIZE_MAX if one has another number of cells. Of each
   row `spans` gets where it begins and ends; of each whose score is not said by `is_number`, `doubts` gets its number
   and where the cell begins and ends, and `count` how many they are. */
size_t read_score_cells(const uint8_t *restrict text, size_t n, uint8_t delimiter, size_t width, size_t place,
                        uint64_t *restrict scores, uint64_t *restrict spans, uint64_t *restrict doubts,
                        uint64_t *restrict count)
{
    size_t at = 0, rows = 0, unsure = 0;
    while (at < n) {
        size_t start = at, column = 0, cell = at, end = n;
        if (width > 1 && text[at] == '\n') {
            at++;
            continue;
        }
        for (; text[at] != '\n'; at++)
            if (text[at] == delimiter) {
                if (column == place)
                    end = at;
                if (++column == place)
                    cell = at + 1;
            }
        if (column + 1 != width)
            return SIZE_MAX;
        if (place == column)
            end = at;
        spans[2 * rows] = start;
        spans[2 * rows + 1] = at++;
        if (!is_number(text + cell, text + end, scores + rows)) {
            doubts[3 * unsure] = rows;
            doubts[3 * unsure + 1] = cell;
            doubts[3 * unsure++ + 2] = end;
        }
        rows++;
    }
    *count = unsure;
    return rows;
}

static inline const uint8_t *after_blanks(const uint8_t *at)
{
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

static inline int is_word(const uint8_t *at, const char *word)
{
    while (*word && *at == (uint8_t)*word)
        at++, word++;
    return !*word;
}

/* Where a text, a number or a word of JSON ends, NULL if it is none of these; a text with an escape is left alone. */
static inline const uint8_t *after_value(const uint8_t *at)
{
    if (*at == '"') {
        for (at++; *at != '"'; at++)
            if (*at == '\\' || *at < 32)
                return NULL;
        return at + 1;
    }
    if (*at == '-' || (uint8_t)(*at - '0') < 10) {
        const uint8_t *start = at + (*at == '-'), *end = digits(start);
        if (end == start || (*start == '0' && end > start + 1))
            return NULL;
        if (*end == '.') {
            start = end + 1;
            if ((end = digits(start)) == start)
                return NULL;
        }
        if (*end == 'e' || *end == 'E') {
            start = end + 1 + (end[1] == '+' || end[1] == '-');
            if ((end = digits(start)) == start)
                return NULL;
        }
        return end;
    }
    return is_word(at, "null") || is_word(at, "true") ? at + 4 : is_word(at, "false") ? at + 5 : NULL;
}

/* Reads the scores of rows of JSON that all have the same names in the same order, each on a line; `text` holds whole
   lines. `names` has the `width` names as they are written, quotes included, between two of `places` each. Of each row
   `spans` gets where it begins, and where the brace is that closes it. Returns how many rows there are, or SIZE_MAX if
   one is anything else, holds a list, an object or an escape, or has a score that `is_number` does not say. */
size_t read_score_objects(const uint8_t *restrict text, size_t n, const uint8_t *restrict names,
                          const uint64_t *restrict places, size_t width, size_t place, uint64_t *restrict scores,
                          uint64_t *restrict spans)
{
    const uint8_t *at = text, *end = text + n;
    size_t rows = 0;
    for (; at < end; at++) {
        if (*at == '\n')
            continue;
        spans[2 * rows] = (uint64_t)(at - text);
        if (*at != '{')
            return SIZE_MAX;
        for (size_t column = 0; column < width; column++) {
            const uint8_t *name = names + places[column], *stop = names + places[column + 1], *value;
            at = after_blanks(at + 1);
            while (name < stop && *at == *name)
                at++, name++;
            at = after_blanks(at);
            if (name < stop || *at != ':')
                return SIZE_MAX;
            value = after_blanks(at + 1);
            if (!(at = after_value(value)))
                return SIZE_MAX;
            if (column == place) {
                if (*value == 'n')
                    scores[rows] = 0x7ff8000000000000ULL;
                else if (*value == '"' || !is_number(value, at, scores + rows))
                    return SIZE_MAX;
            }
            at = after_blanks(at);
            if (*at != (column + 1 < width ? ',' : '}'))
                return SIZE_MAX;
        }
        spans[2 * rows + 1] = (uint64_t)(at++ - text);
        if (*at != '\n')
            return SIZE_MAX;
        rows++;
    }
    return rows;
}

static inline uint8_t *copied(uint8_t *restrict out, const uint8_t *restrict from, size_t n)
{
    for (; n >= 8; n -= 8, from += 8, out += 8) {
        __builtin_memcpy(out, from, 8);
        /* or a compiler calls the C library, which is not there */
        __asm__ volatile("" ::: "memory");
    }
    for (; n > 0; n--) {
        *out++ = *from++;
        __asm__ volatile("" ::: "memory");
    }
    return out;
}

/* Writes each row as it stands in the text, and behind it the ending of its code, which lies between two of `places`
   among the endings; returns how many bytes that are. */
size_t write_endings(const uint8_t *restrict text, const uint64_t *restrict spans, const uint8_t *restrict codes,
                     size_t rows, const uint8_t *restrict endings, const uint64_t *restrict places,
                     uint8_t *restrict out)
{
    uint8_t *at = out;
    for (size_t row = 0; row < rows; row++) {
        at = copied(at, text + spans[2 * row], spans[2 * row + 1] - spans[2 * row]);
        at = copied(at, endings + places[codes[row]], places[codes[row] + 1] - places[codes[row]]);
    }
    return (size_t)(at - out);
}
