/* The upper half of a float, as Triton's own launcher packs it. */
static uint16_t pack_bf16(double value) {
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return (uint16_t)(bits >> 16);
}
