/* The nearest IEEE half, ties to even: as CPython packs it, which Triton's own launcher uses. */
static uint16_t pack_fp16(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    uint64_t digits = bits & 0xfffffffffffffu;
    if (exponent == 1024)
        return (uint16_t)(sign | 0x7c00 | (digits ? 0x200 | digits >> 42 : 0));
    if (exponent < -25)
        return sign;
    digits |= 0x10000000000000u;
    const int drop = exponent < -14 ? 28 - exponent : 42;
    const uint64_t rest = digits & ((1ull << drop) - 1), half = 1ull << (drop - 1);
    uint64_t kept = digits >> drop;
    kept += rest > half || (rest == half && (kept & 1));
    kept += exponent < -14 ? 0 : (uint64_t)(exponent + 14) << 10;
    return (uint16_t)(sign | (kept < 0x7c00 ? kept : 0x7c00));
}
