/* The chip's instructions that touch nothing but registers, flags, SRAM, the program counter and ports that a bench has taken over,
 * executed here, several times as fast as by simavr; all others are left to simavr, one by one: other I/O registers, interrupts, sleep,
 * what is out of range or unknown.
 *
 * A decoded instruction is used as long as its word in flash is the same: a bootloader may write there.
 *
 * What simavr does differently from silicon: it takes ADIW and SBIW with some constants for instructions of two words, and a skip
 * goes too far over them; here skips are right.
 */
#include "simavr_state.h"

#include <string.h>

#include <simavr/sim_core.h>
#include <simavr/sim_interrupts.h>

enum {
    SRAM = 0x100, SPL = 0x5D, SPH = 0x5E,
    PORTS = 0x23, PORTS_END = 0x2B, IO = 0x20, /* data addresses */
    R0 = 0, X = 26, Y = 28, Z = 30,
};

#define OPS(OP)                                                                                                                    \
    OP(LEFT) OP(NOP) OP(MOVW) OP(MULS) OP(MULSU) OP(CPC) OP(CP) OP(SUB) OP(SBC) OP(ADD) OP(ADC) OP(CPSE) OP(AND) OP(EOR) OP(OR)    \
    OP(MOV) OP(CPI) OP(SBCI) OP(SUBI) OP(ORI) OP(ANDI) OP(LDI) OP(LDD) OP(STD) OP(LDS) OP(STS) OP(LD_INC) OP(ST_INC) OP(LD_DEC)      \
    OP(ST_DEC) OP(LPM) OP(LPM_INC) OP(PUSH) OP(POP) OP(COM) OP(NEG) OP(SWAP) OP(INC) OP(ASR) OP(LSR) OP(ROR) OP(DEC) OP(BSET)         \
    OP(BCLR) OP(JMP) OP(CALL) OP(RET) OP(IJMP) OP(ICALL) OP(ADIW) OP(SBIW) OP(MUL) OP(RJMP) OP(RCALL) OP(BRBS) OP(BRBC) OP(BLD)        \
    OP(BST) OP(SBRC) OP(SBRS) OP(IN) OP(OUT) OP(SBI) OP(CBI) OP(SBIC) OP(SBIS)

#define NAME(op) op,
#define LABEL(op) &&do_##op,
enum { OPS(NAME) };

static inline uint16_t word_at(const avr_t *avr, uint32_t pc)
{
    uint16_t word;
    memcpy(&word, avr->flash + pc, sizeof word);
    return word;
}

static tl_decoded decoded(uint16_t word, int op, int d, int r, int k)
{
    return (tl_decoded){word, (uint8_t)op, (uint8_t)d, (uint8_t)r, (int16_t)k};
}

static int is_long(uint16_t word)
{
    return (word & 0xFC0F) == 0x9000 || (word & 0xFE0C) == 0x940C;
}

/* 1001 00xd dddd xxxx: loads and stores */
static tl_decoded decode_access(uint16_t w, int d)
{
    int stores = w >> 9 & 1;
    switch (w & 0xF) {
    case 0x0: return decoded(w, stores ? STS : LDS, d, 0, 0);
    case 0x1: return decoded(w, stores ? ST_INC : LD_INC, d, Z, 0);
    case 0x2: return decoded(w, stores ? ST_DEC : LD_DEC, d, Z, 0);
    case 0x4: return decoded(w, stores ? LEFT : LPM, d, 0, 0);
    case 0x5: return decoded(w, stores ? LEFT : LPM_INC, d, 0, 0);
    case 0x9: return decoded(w, stores ? ST_INC : LD_INC, d, Y, 0);
    case 0xA: return decoded(w, stores ? ST_DEC : LD_DEC, d, Y, 0);
    case 0xC: return decoded(w, stores ? STD : LDD, d, X, 0);
    case 0xD: return decoded(w, stores ? ST_INC : LD_INC, d, X, 0);
    case 0xE: return decoded(w, stores ? ST_DEC : LD_DEC, d, X, 0);
    case 0xF: return decoded(w, stores ? PUSH : POP, d, 0, 0);
    default: return decoded(w, LEFT, 0, 0, 0);
    }
}

/* 1001 010d dddd xxxx */
static tl_decoded decode_single(uint16_t w, int d)
{
    static const uint8_t ops[16] = {COM, NEG, SWAP, INC, LEFT, ASR, LSR, ROR, LEFT, LEFT, DEC, LEFT, JMP, JMP, CALL, CALL};
    switch (w) {
    case 0x9508: return decoded(w, RET, 0, 0, 0);
    case 0x9409: return decoded(w, IJMP, 0, 0, 0);
    case 0x9509: return decoded(w, ICALL, 0, 0, 0);
    case 0x95C8: return decoded(w, LPM, R0, 0, 0);
    }
    if ((w & 0xFF0F) == 0x9408) { /* flags; those that bear on interrupts are left */
        int bit = w >> 4 & 7;
        return decoded(w, bit == S_I ? LEFT : w & 0x80 ? BCLR : BSET, 0, 0, bit);
    }
    if ((w & 0xFE0E) == 0x940C && (w & 0x01F1))
        return decoded(w, LEFT, 0, 0, 0); /* beyond 64 K words */
    return decoded(w, ops[w & 0xF], d, 0, 0);
}

static __attribute__((noinline)) tl_decoded decode(uint16_t w)
{
    static const uint8_t twos[16] = {[1] = CPC, [2] = SBC, [3] = ADD, [4] = CPSE, [5] = CP, [6] = SUB, [7] = ADC,
                                     [8] = AND, [9] = EOR, [10] = OR, [11] = MOV};
    static const uint8_t withs[8] = {[3] = CPI, [4] = SBCI, [5] = SUBI, [6] = ORI, [7] = ANDI};
    int d = w >> 4 & 31, r = (w & 15) | (w >> 5 & 16), k = (w & 15) | (w >> 4 & 0xF0), way = (int16_t)(w << 4) >> 3;
    switch (w >> 12) {
    case 0x0:
        if (w == 0)
            return decoded(w, NOP, 0, 0, 0);
        if (w >> 8 == 1)
            return decoded(w, MOVW, 2 * (w >> 4 & 15), 2 * (w & 15), 0);
        if (w >> 8 == 2)
            return decoded(w, MULS, 16 + (w >> 4 & 15), 16 + (w & 15), 0);
        if (w >> 8 == 3)
            return decoded(w, (w & 0x88) == 0 ? MULSU : LEFT, 16 + (w >> 4 & 7), 16 + (w & 7), 0);
        return decoded(w, twos[w >> 10], d, r, 0);
    case 0x1: case 0x2:
        return decoded(w, twos[w >> 10], d, r, 0);
    case 0x3: case 0x4: case 0x5: case 0x6: case 0x7:
        return decoded(w, withs[w >> 12], 16 + (w >> 4 & 15), 0, k);
    case 0x8: case 0xA:
        return decoded(w, w >> 9 & 1 ? STD : LDD, d, w & 8 ? Y : Z, (w & 7) | (w >> 7 & 0x18) | (w >> 8 & 0x20));
    case 0x9:
        if ((w & 0xFC00) == 0x9000)
            return decode_access(w, d);
        if ((w & 0xFE00) == 0x9400)
            return decode_single(w, d);
        if ((w & 0xFE00) == 0x9600)
            return decoded(w, w & 0x100 ? SBIW : ADIW, 24 + 2 * (w >> 4 & 3), 0, (w & 15) | (w >> 2 & 0x30));
        if ((w & 0xFC00) == 0x9800) {
            static const uint8_t kinds[4] = {CBI, SBIC, SBI, SBIS};
            return decoded(w, kinds[w >> 8 & 3], 0, IO + (w >> 3 & 31), w & 7);
        }
        return decoded(w, MUL, d, r, 0);
    case 0xC:
        return decoded(w, RJMP, 0, 0, way);
    case 0xD:
        return decoded(w, RCALL, 0, 0, way);
    case 0xE:
        return decoded(w, LDI, 16 + (w >> 4 & 15), 0, k);
    case 0xF: {
        static const uint8_t bits[4] = {BLD, BST, SBRC, SBRS};
        if (!(w & 0x800))
            return decoded(w, w & 0x400 ? BRBC : BRBS, w & 7, 0, (int16_t)(w << 6) >> 9 << 1);
        return w & 8 ? decoded(w, LEFT, 0, 0, 0) : decoded(w, bits[w >> 9 & 3], d, 0, w & 7);
    }
    default:
        return decoded(w, w & 0x800 ? OUT : IN, d, IO + ((w & 15) | (w >> 5 & 0x30)), 0);
    }
}

#define PAIR(at) ((uint16_t)(R[at] | R[(at) + 1] << 8))
#define SET_PAIR(at, value) (R[at] = (uint8_t)(value), R[(at) + 1] = (uint8_t)((value) >> 8))
#define IN_SRAM(address) ((uint16_t)((address) - SRAM) <= last)
/* On with what is at pc. Written out behind each instruction, the processor foresees where the next jump goes. */
#define DISPATCH do { \
    if (left <= 0 || pc >= end) goto do_LEFT; \
    at = all_decoded + (pc >> 1); \
    uint16_t word = word_at(avr, pc); \
    if (__builtin_expect(at->word != word, 0)) *at = decode(word); \
    goto *labels[at->op]; } while (0)
#define NEXT(bytes, cycles) do { pc += (bytes); left -= (cycles); DISPATCH; } while (0)
#define ZNS(result) (F[S_Z] = (result) == 0, F[S_N] = (uint8_t)(result) >> 7, F[S_S] = F[S_N] ^ F[S_V])
#define LOGIC(expression) do { uint8_t v = (uint8_t)(expression); R[at->d] = v; F[S_V] = 0; ZNS(v); NEXT(2, 1); } while (0)
#define SUM_FLAGS(a, b, v, carries) \
    (F[S_H] = (carries) >> 3 & 1, F[S_C] = (carries) >> 7 & 1, F[S_V] = (uint8_t)(((a) ^ (v)) & ((b) ^ (v))) >> 7, \
     F[S_N] = (v) >> 7, F[S_S] = F[S_N] ^ F[S_V])
#define ADDITION(carry) do { \
    uint8_t a = R[at->d], b = R[at->r], v = (uint8_t)(a + b + (carry)), c = (uint8_t)((a & b) | ((a | b) & ~v)); \
    R[at->d] = v; SUM_FLAGS(a, b, v, c); F[S_Z] = v == 0; NEXT(2, 1); } while (0)
#define SUBTRACTION(subtrahend, borrow, keeps, chained) do { \
    uint8_t a = R[at->d], b = (uint8_t)(subtrahend), v = (uint8_t)(a - b - (borrow)), c = (uint8_t)((~a & b) | ((~a | b) & v)); \
    if (keeps) R[at->d] = v; \
    F[S_H] = c >> 3 & 1; F[S_C] = c >> 7; F[S_V] = (uint8_t)((a ^ b) & (a ^ v)) >> 7; \
    F[S_N] = v >> 7; F[S_S] = F[S_N] ^ F[S_V]; F[S_Z] = v == 0 && (!(chained) || F[S_Z]); NEXT(2, 1); } while (0)
#define SHIFT(result, carry) do { \
    uint8_t v = (uint8_t)(result), c = (carry); R[at->d] = v; F[S_C] = c; F[S_V] = (uint8_t)(v >> 7 ^ c); ZNS(v); NEXT(2, 1); } while (0)
#define PRODUCT(value) do { \
    uint16_t v = (uint16_t)(value); SET_PAIR(R0, v); F[S_C] = v >> 15; F[S_Z] = v == 0; NEXT(2, 2); } while (0)
#define KEEP_TIME (avr->cycle = stop - (uint64_t)left, avr->pc = pc) /* for callbacks */
#define READABLE is_ours(sim, at->r, (const void *)avr->io[at->r - IO].r.c)
#define WRITABLE is_ours(sim, at->r, (const void *)avr->io[at->r - IO].w.c)
#define SKIP(condition) do { \
    if (!(condition)) NEXT(2, 1); \
    if (is_long(word_at(avr, pc + 2))) NEXT(6, 3); \
    NEXT(4, 2); } while (0)

/* Whether an I/O register is mere memory, or of a port whose callbacks set no timer and raise no interrupt. */
static inline int is_ours(const tl_sim *sim, uint8_t address, const void *callback)
{
    if (address == IO + 0x3F || sim->avr->io[address - IO].irq)
        return 0;
    return !callback || (sim->on_pins && address >= PORTS && address <= PORTS_END);
}

static uint8_t read_io(avr_t *avr, uint8_t address)
{
    if (avr->io[address - IO].r.c)
        avr->data[address] = avr->io[address - IO].r.c(avr, address, avr->io[address - IO].r.param);
    return avr->data[address];
}

static void write_io(avr_t *avr, uint8_t address, uint8_t value)
{
    if (avr->io[address - IO].w.c)
        avr->io[address - IO].w.c(avr, address, value, avr->io[address - IO].w.param);
    else
        avr->data[address] = value;
}

/* Pushes a return address; whoever calls has seen that there is room. */
static void push_address(uint8_t *R, uint16_t sp, uint32_t pc)
{
    R[sp] = (uint8_t)(pc >> 1);
    R[sp - 1] = (uint8_t)(pc >> 9);
    R[SPL] = (uint8_t)(sp - 2);
    R[SPH] = (uint8_t)((sp - 2) >> 8);
}

/* Instructions that can be taken here, one after another, until one can't or the batch is over; returns the cycles left of it. */
static int64_t run_plain(tl_sim *sim, int64_t all)
{
    static const void *const labels[] = {OPS(LABEL)};
    avr_t *avr = sim->avr;
    uint8_t *const R = avr->data, *const F = avr->sreg;
    const uint16_t last = (uint16_t)(avr->ramend - SRAM);
    const uint32_t end = sim->code_end;
    const uint64_t stop = avr->cycle + (uint64_t)all;
    int64_t left = all;
    uint32_t pc = avr->pc;
    tl_decoded *const all_decoded = sim->decoded, *at;
    uint16_t address, sp;

    DISPATCH;

do_NOP: NEXT(2, 1);
do_MOVW: R[at->d] = R[at->r]; R[at->d + 1] = R[at->r + 1]; NEXT(2, 1);
do_MOV: R[at->d] = R[at->r]; NEXT(2, 1);
do_LDI: R[at->d] = (uint8_t)at->k; NEXT(2, 1);
do_MUL: PRODUCT(R[at->d] * R[at->r]);
do_MULS: PRODUCT((int8_t)R[at->d] * (int8_t)R[at->r]);
do_MULSU: PRODUCT((int8_t)R[at->d] * R[at->r]);
do_ADD: ADDITION(0);
do_ADC: ADDITION(F[S_C]);
do_SUB: SUBTRACTION(R[at->r], 0, 1, 0);
do_SBC: SUBTRACTION(R[at->r], F[S_C], 1, 1);
do_CP: SUBTRACTION(R[at->r], 0, 0, 0);
do_CPC: SUBTRACTION(R[at->r], F[S_C], 0, 1);
do_SUBI: SUBTRACTION(at->k, 0, 1, 0);
do_SBCI: SUBTRACTION(at->k, F[S_C], 1, 1);
do_CPI: SUBTRACTION(at->k, 0, 0, 0);
do_AND: LOGIC(R[at->d] & R[at->r]);
do_OR: LOGIC(R[at->d] | R[at->r]);
do_EOR: LOGIC(R[at->d] ^ R[at->r]);
do_ANDI: LOGIC(R[at->d] & at->k);
do_ORI: LOGIC(R[at->d] | at->k);
do_COM: F[S_C] = 1; LOGIC(~R[at->d]);
do_NEG: {
    uint8_t a = R[at->d], v = (uint8_t)-a;
    R[at->d] = v;
    F[S_H] = (v | a) >> 3 & 1;
    F[S_V] = v == 0x80;
    F[S_C] = v != 0;
    ZNS(v);
    NEXT(2, 1);
}
do_SWAP: R[at->d] = (uint8_t)(R[at->d] >> 4 | R[at->d] << 4); NEXT(2, 1);
do_INC: R[at->d]++; F[S_V] = R[at->d] == 0x80; ZNS(R[at->d]); NEXT(2, 1);
do_DEC: R[at->d]--; F[S_V] = R[at->d] == 0x7F; ZNS(R[at->d]); NEXT(2, 1);
do_ASR: SHIFT(R[at->d] >> 1 | (R[at->d] & 0x80), R[at->d] & 1);
do_LSR: SHIFT(R[at->d] >> 1, R[at->d] & 1);
do_ROR: SHIFT(R[at->d] >> 1 | F[S_C] << 7, R[at->d] & 1);
do_ADIW: {
    uint16_t a = PAIR(at->d), v = (uint16_t)(a + at->k);
    SET_PAIR(at->d, v);
    F[S_V] = (uint16_t)(~a & v) >> 15; F[S_C] = (uint16_t)(a & ~v) >> 15;
    F[S_Z] = v == 0; F[S_N] = v >> 15; F[S_S] = F[S_N] ^ F[S_V];
    NEXT(2, 2);
}
do_SBIW: {
    uint16_t a = PAIR(at->d), v = (uint16_t)(a - at->k);
    SET_PAIR(at->d, v);
    F[S_V] = (uint16_t)(a & ~v) >> 15; F[S_C] = (uint16_t)(~a & v) >> 15;
    F[S_Z] = v == 0; F[S_N] = v >> 15; F[S_S] = F[S_N] ^ F[S_V];
    NEXT(2, 2);
}
do_BSET: F[at->k] = 1; NEXT(2, 1);
do_BCLR: F[at->k] = 0; NEXT(2, 1);
do_BST: F[S_T] = R[at->d] >> at->k & 1; NEXT(2, 1);
do_BLD: R[at->d] = (uint8_t)((R[at->d] & ~(1 << at->k)) | F[S_T] << at->k); NEXT(2, 1);

do_LDD:
    address = (uint16_t)(PAIR(at->r) + at->k);
    if (!IN_SRAM(address)) goto do_LEFT;
    R[at->d] = R[address];
    NEXT(2, 2);
do_STD:
    address = (uint16_t)(PAIR(at->r) + at->k);
    if (!IN_SRAM(address)) goto do_LEFT;
    R[address] = R[at->d];
    NEXT(2, 2);
do_LD_INC:
    address = PAIR(at->r);
    if (!IN_SRAM(address) || (at->d | 1) == (at->r | 1)) goto do_LEFT;
    R[at->d] = R[address];
    SET_PAIR(at->r, address + 1);
    NEXT(2, 2);
do_ST_INC:
    address = PAIR(at->r);
    if (!IN_SRAM(address) || (at->d | 1) == (at->r | 1)) goto do_LEFT;
    R[address] = R[at->d];
    SET_PAIR(at->r, address + 1);
    NEXT(2, 2);
do_LD_DEC:
    address = (uint16_t)(PAIR(at->r) - 1);
    if (!IN_SRAM(address) || (at->d | 1) == (at->r | 1)) goto do_LEFT;
    R[at->d] = R[address];
    SET_PAIR(at->r, address);
    NEXT(2, 2);
do_ST_DEC:
    address = (uint16_t)(PAIR(at->r) - 1);
    if (!IN_SRAM(address) || (at->d | 1) == (at->r | 1)) goto do_LEFT;
    R[address] = R[at->d];
    SET_PAIR(at->r, address);
    NEXT(2, 2);
do_LDS:
    address = word_at(avr, pc + 2);
    if (!IN_SRAM(address)) goto do_LEFT;
    R[at->d] = R[address];
    NEXT(4, 2);
do_STS:
    address = word_at(avr, pc + 2);
    if (!IN_SRAM(address)) goto do_LEFT;
    R[address] = R[at->d];
    NEXT(4, 2);
do_LPM:
    address = PAIR(Z);
    if (address > avr->flashend) goto do_LEFT;
    R[at->d] = avr->flash[address];
    NEXT(2, 3);
do_LPM_INC:
    address = PAIR(Z);
    if (address > avr->flashend || (at->d | 1) == (Z | 1)) goto do_LEFT;
    R[at->d] = avr->flash[address];
    SET_PAIR(Z, address + 1);
    NEXT(2, 3);
do_PUSH:
    sp = PAIR(SPL);
    if (!IN_SRAM(sp)) goto do_LEFT;
    R[sp] = R[at->d];
    SET_PAIR(SPL, sp - 1);
    NEXT(2, 2);
do_POP:
    sp = (uint16_t)(PAIR(SPL) + 1);
    if (!IN_SRAM(sp)) goto do_LEFT;
    R[at->d] = R[sp];
    SET_PAIR(SPL, sp);
    NEXT(2, 2);

do_RJMP: NEXT(2 + at->k, 2);
do_JMP: pc = 2u * word_at(avr, pc + 2); NEXT(0, 3);
do_IJMP: pc = 2u * PAIR(Z); NEXT(0, 2);
do_RCALL:
    sp = PAIR(SPL);
    if (!IN_SRAM(sp - 1) || !IN_SRAM(sp)) goto do_LEFT;
    push_address(R, sp, pc + 2);
    NEXT(2 + at->k, 3);
do_CALL:
    sp = PAIR(SPL);
    if (!IN_SRAM(sp - 1) || !IN_SRAM(sp)) goto do_LEFT;
    push_address(R, sp, pc + 4);
    pc = 2u * word_at(avr, pc + 2);
    NEXT(0, 4);
do_ICALL:
    sp = PAIR(SPL);
    if (!IN_SRAM(sp - 1) || !IN_SRAM(sp)) goto do_LEFT;
    push_address(R, sp, pc + 2);
    pc = 2u * PAIR(Z);
    NEXT(0, 3);
do_RET:
    sp = (uint16_t)(PAIR(SPL) + 2);
    if (!IN_SRAM(sp - 1) || !IN_SRAM(sp)) goto do_LEFT;
    pc = 2u * (R[sp] | R[sp - 1] << 8);
    SET_PAIR(SPL, sp);
    NEXT(0, 4);
do_BRBS: if (F[at->d]) NEXT(2 + at->k, 2); NEXT(2, 1);
do_BRBC: if (!F[at->d]) NEXT(2 + at->k, 2); NEXT(2, 1);
do_CPSE: SKIP(R[at->d] == R[at->r]);
do_SBRC: SKIP(!(R[at->d] >> at->k & 1));
do_SBRS: SKIP(R[at->d] >> at->k & 1);

do_IN:
    if (at->r == IO + 0x3F) {
        uint8_t flags = 0;
        for (int bit = 0; bit < 8; bit++)
            flags |= (uint8_t)(F[bit] << bit);
        R[at->r] = R[at->d] = flags;
        NEXT(2, 1);
    }
    if (!READABLE) goto do_LEFT;
    KEEP_TIME;
    R[at->d] = read_io(avr, at->r);
    NEXT(2, 1);
do_OUT:
    if (!WRITABLE) goto do_LEFT;
    KEEP_TIME;
    write_io(avr, at->r, R[at->d]);
    NEXT(2, 1);
do_SBI:
    if (!READABLE || !WRITABLE) goto do_LEFT;
    KEEP_TIME;
    write_io(avr, at->r, (uint8_t)(read_io(avr, at->r) | 1 << at->k));
    NEXT(2, 2);
do_CBI:
    if (!READABLE || !WRITABLE) goto do_LEFT;
    KEEP_TIME;
    write_io(avr, at->r, (uint8_t)(read_io(avr, at->r) & ~(1 << at->k)));
    NEXT(2, 2);
do_SBIC:
    if (!READABLE) goto do_LEFT;
    KEEP_TIME;
    SKIP(!(read_io(avr, at->r) >> at->k & 1));
do_SBIS:
    if (!READABLE) goto do_LEFT;
    KEEP_TIME;
    SKIP(read_io(avr, at->r) >> at->k & 1);

do_LEFT:
    avr->cycle = stop - (uint64_t)left;
    avr->pc = pc;
    return left;
}

/* A batch of instructions, as avr_run_one() would take it; returns where the program goes on. */
static avr_flashaddr_t run_batch(tl_sim *sim)
{
    avr_t *avr = sim->avr;
    int64_t left = avr->interrupt_state ? 1 : (int64_t)avr->run_cycle_count;
    for (;;) {
        left = run_plain(sim, left);
        if (left <= 0)
            return avr->pc;
        uint64_t before = avr->cycle;
        avr->run_cycle_count = 0; /* simavr shall take one instruction */
        avr_flashaddr_t next = avr_run_one(avr);
        if (avr->run_cycle_count) /* it has set a timer, so simavr knew anew how far to go, and has gone there */
            return next;
        left -= (int64_t)(avr->cycle - before);
        if (avr->state != cpu_Running || sim->status.dead || avr->interrupt_state || left <= 0)
            return next;
        avr->pc = next;
    }
}

/* avr_callback_run_raw() of simavr, with that batch */
void tl_core_run(avr_t *avr)
{
    avr_flashaddr_t next = avr->pc;
    if (avr->state == cpu_Running)
        next = run_batch(avr->custom.data);
    avr_cycle_count_t sleep = avr_cycle_timer_process(avr);
    avr->pc = next;
    if (avr->state == cpu_Sleeping) {
        if (!avr->sreg[S_I]) {
            avr->state = cpu_Done;
            return;
        }
        avr->sleep(avr, sleep);
        avr->cycle += 1 + sleep;
    }
    if ((avr->state == cpu_Running || avr->state == cpu_Sleeping) && avr->interrupt_state)
        avr_service_interrupts(avr);
}
