/* Instructions as simavr_core.c takes them. Library-internal. */
#ifndef TINYLIGHT_SIMAVR_DECODE_H
#define TINYLIGHT_SIMAVR_DECODE_H
#include <stdint.h>

/* LEFT: to simavr */
#define TL_OPS(OP)                                                                                                                    \
    OP(LEFT) OP(NOP) OP(MOVW) OP(MULS) OP(MULSU) OP(CPC) OP(CP) OP(SUB) OP(SBC) OP(ADD) OP(ADC) OP(CPSE) OP(AND) OP(EOR) OP(OR)    \
    OP(MOV) OP(CPI) OP(SBCI) OP(SUBI) OP(ORI) OP(ANDI) OP(LDI) OP(LDD) OP(STD) OP(LDS) OP(STS) OP(LD_INC) OP(ST_INC) OP(LD_DEC)      \
    OP(ST_DEC) OP(LPM) OP(LPM_INC) OP(PUSH) OP(POP) OP(COM) OP(NEG) OP(SWAP) OP(INC) OP(ASR) OP(LSR) OP(ROR) OP(DEC) OP(BSET)         \
    OP(BCLR) OP(JMP) OP(CALL) OP(RET) OP(IJMP) OP(ICALL) OP(ADIW) OP(SBIW) OP(MUL) OP(RJMP) OP(RCALL) OP(BRBS) OP(BRBC)                  \
    OP(BRCS) OP(BRCC) OP(BREQ) OP(BRNE) OP(BRMI) OP(BRPL) OP(BRVS) OP(BRVC) OP(BRLT) OP(BRGE) OP(BRHS) OP(BRHC) OP(BLD)               \
    OP(BST) OP(SBRC) OP(SBRS) OP(IN) OP(OUT) OP(SBI) OP(CBI) OP(SBIC) OP(SBIS)
#define TL_NAME(op) OP_##op,
enum { TL_OPS(TL_NAME) };
enum { TL_R0 = 0, TL_X = 26, TL_Y = 28, TL_Z = 30, TL_IO = 0x20 }; /* data addresses */

/* An instruction of one word: `d` is a register or a flag, `r` a register or an I/O address, `k` a constant, a bit, or a way in bytes. */
typedef struct {
    uint16_t word;
    uint8_t op, d, r;
    int16_t k;
} tl_decoded;

tl_decoded tl_decode(uint16_t word);

/* Whether an instruction that begins with it has two words. */
static inline int tl_is_long(uint16_t word)
{
    return (word & 0xFC0F) == 0x9000 || (word & 0xFE0C) == 0x940C;
}

#endif
