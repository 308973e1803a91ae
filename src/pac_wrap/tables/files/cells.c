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
