/* What an instruction's word says. Interface: simavr_decode.h. */
#include "simavr_decode.h"

static tl_decoded decoded(uint16_t word, int op, int d, int r, int k)
{
    return (tl_decoded){word, (uint8_t)op, (uint8_t)d, (uint8_t)r, (int16_t)k};
}

/* 1001 00xd dddd xxxx: loads and stores */
static tl_decoded decode_access(uint16_t w, int d)
{
    int stores = w >> 9 & 1;
    switch (w & 0xF) {
    case 0x0: return decoded(w, stores ? OP_STS : OP_LDS, d, 0, 0);
    case 0x1: return decoded(w, stores ? OP_ST_INC : OP_LD_INC, d, TL_Z, 0);
    case 0x2: return decoded(w, stores ? OP_ST_DEC : OP_LD_DEC, d, TL_Z, 0);
    case 0x4: return decoded(w, stores ? OP_LEFT : OP_LPM, d, 0, 0);
    case 0x5: return decoded(w, stores ? OP_LEFT : OP_LPM_INC, d, 0, 0);
    case 0x9: return decoded(w, stores ? OP_ST_INC : OP_LD_INC, d, TL_Y, 0);
    case 0xA: return decoded(w, stores ? OP_ST_DEC : OP_LD_DEC, d, TL_Y, 0);
    case 0xC: return decoded(w, stores ? OP_STD : OP_LDD, d, TL_X, 0);
    case 0xD: return decoded(w, stores ? OP_ST_INC : OP_LD_INC, d, TL_X, 0);
    case 0xE: return decoded(w, stores ? OP_ST_DEC : OP_LD_DEC, d, TL_X, 0);
    case 0xF: return decoded(w, stores ? OP_PUSH : OP_POP, d, 0, 0);
    default: return decoded(w, OP_LEFT, 0, 0, 0);
    }
}

/* 1001 010d dddd xxxx */
static tl_decoded decode_single(uint16_t w, int d)
{
    static const uint8_t ops[16] = {OP_COM, OP_NEG, OP_SWAP, OP_INC, OP_LEFT, OP_ASR, OP_LSR, OP_ROR,
                                    OP_LEFT, OP_LEFT, OP_DEC, OP_LEFT, OP_JMP, OP_JMP, OP_CALL,
                                    OP_CALL};
    switch (w) {
    case 0x9508: return decoded(w, OP_RET, 0, 0, 0);
    case 0x9409: return decoded(w, OP_IJMP, 0, 0, 0);
    case 0x9509: return decoded(w, OP_ICALL, 0, 0, 0);
    case 0x95C8: return decoded(w, OP_LPM, TL_R0, 0, 0);
    }
    if ((w & 0xFF0F) == 0x9408) { /* flags; N, V and S alone, and what bears on interrupts, are left */
        int bit = w >> 4 & 7;
        return decoded(w, (bit >= 2 && bit <= 4) || bit == 7 ? OP_LEFT : w & 0x80 ? OP_BCLR : OP_BSET, 0, 0, bit);
    }
    if ((w & 0xFE0C) == 0x940C && (w & 0x01F1))
        return decoded(w, OP_LEFT, 0, 0, 0); /* beyond 64 K words */
    return decoded(w, ops[w & 0xF], d, 0, 0);
}

tl_decoded tl_decode(uint16_t w)
{
    static const uint8_t twos[16] = {[1] = OP_CPC, [2] = OP_SBC, [3] = OP_ADD, [4] = OP_CPSE, [5] = OP_CP, [6] = OP_SUB, [7] = OP_ADC,
                                     [8] = OP_AND, [9] = OP_EOR, [10] = OP_OR, [11] = OP_MOV};
    static const uint8_t withs[8] = {[3] = OP_CPI, [4] = OP_SBCI, [5] = OP_SUBI, [6] = OP_ORI, [7] = OP_ANDI};
    int d = w >> 4 & 31, r = (w & 15) | (w >> 5 & 16), k = (w & 15) | (w >> 4 & 0xF0), way = (int16_t)(w << 4) >> 3;
    switch (w >> 12) {
    case 0x0:
        if (w == 0)
            return decoded(w, OP_NOP, 0, 0, 0);
        if (w >> 8 == 1)
            return decoded(w, OP_MOVW, 2 * (w >> 4 & 15), 2 * (w & 15), 0);
        if (w >> 8 == 2)
            return decoded(w, OP_MULS, 16 + (w >> 4 & 15), 16 + (w & 15), 0);
        if (w >> 8 == 3)
            return decoded(w, (w & 0x88) == 0 ? OP_MULSU : OP_LEFT, 16 + (w >> 4 & 7), 16 + (w & 7), 0);
        return decoded(w, twos[w >> 10], d, r, 0);
    case 0x1: case 0x2:
        return decoded(w, twos[w >> 10], d, r, 0);
    case 0x3: case 0x4: case 0x5: case 0x6: case 0x7:
        return decoded(w, withs[w >> 12], 16 + (w >> 4 & 15), 0, k);
    case 0x8: case 0xA:
        return decoded(w, w >> 9 & 1 ? OP_STD : OP_LDD, d, w & 8 ? TL_Y : TL_Z, (w & 7) | (w >> 7 & 0x18) | (w >> 8 & 0x20));
    case 0x9:
        if ((w & 0xFC00) == 0x9000)
            return decode_access(w, d);
        if ((w & 0xFE00) == 0x9400)
            return decode_single(w, d);
        if ((w & 0xFE00) == 0x9600)
            return decoded(w, w & 0x100 ? OP_SBIW : OP_ADIW, 24 + 2 * (w >> 4 & 3), 0, (w & 15) | (w >> 2 & 0x30));
        if ((w & 0xFC00) == 0x9800) {
            static const uint8_t kinds[4] = {OP_CBI, OP_SBIC, OP_SBI, OP_SBIS};
            return decoded(w, kinds[w >> 8 & 3], 0, TL_IO + (w >> 3 & 31), w & 7);
        }
        return decoded(w, OP_MUL, d, r, 0);
    case 0xC:
        return decoded(w, OP_RJMP, 0, 0, way);
    case 0xD:
        return decoded(w, OP_RCALL, 0, 0, way);
    case 0xE:
        return decoded(w, OP_LDI, 16 + (w >> 4 & 15), 0, k);
    case 0xF: {
        static const uint8_t bits[4] = {OP_BLD, OP_BST, OP_SBRC, OP_SBRS};
        static const uint8_t sets[8] = {OP_BRCS, OP_BREQ, OP_BRMI, OP_BRVS, OP_BRLT, OP_BRHS, OP_BRBS, OP_BRBS};
        static const uint8_t clears[8] = {OP_BRCC, OP_BRNE, OP_BRPL, OP_BRVC, OP_BRGE, OP_BRHC, OP_BRBC, OP_BRBC};
        if (!(w & 0x800))
            return decoded(w, (w & 0x400 ? clears : sets)[w & 7], w & 7, 0, (int16_t)(w << 6) >> 9 << 1);
        return w & 8 ? decoded(w, OP_LEFT, 0, 0, 0) : decoded(w, bits[w >> 9 & 3], d, 0, w & 7);
    }
    default:
        return decoded(w, w & 0x800 ? OP_OUT : OP_IN, d, TL_IO + ((w & 15) | (w >> 5 & 0x30)), 0);
    }
}
