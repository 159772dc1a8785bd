/* The chip's instructions that touch nothing but registers, flags, SRAM, the program counter and ports that a bench has taken over,
 * executed here, faster than by simavr; all others are left to simavr, one by one: other I/O registers, interrupts, sleep,
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
    SRAM = 0x100, SPL = 0x5D, SPH = 0x5E, /* data addresses */
    PORTS = 0x23, PORTS_END = 0x2B,
};

#define LABEL(op) &&do_##op,

static inline uint16_t word_at(const avr_t *avr, uint32_t pc)
{
    uint16_t word;
    memcpy(&word, avr->flash + pc, sizeof word);
    return word;
}

#define PAIR(at) ((uint16_t)(R[at] | R[(at) + 1] << 8))
#define SET_PAIR(at, value) (R[at] = (uint8_t)(value), R[(at) + 1] = (uint8_t)((value) >> 8))
#define IN_SRAM(address) ((uint16_t)((address) - SRAM) <= last)
/* On with what is at pc. Written out behind each instruction, the processor foresees where the next jump goes. */
#define DISPATCH do { \
    if (left <= 0 || pc >= end) goto do_LEFT; \
    at = all_decoded + (pc >> 1); \
    uint16_t word = word_at(avr, pc); \
    if (__builtin_expect(at->word != word, 0)) *at = tl_decode(word); \
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
    uint16_t v = (uint16_t)(value); SET_PAIR(TL_R0, v); F[S_C] = v >> 15; F[S_Z] = v == 0; NEXT(2, 2); } while (0)
#define KEEP_TIME (avr->cycle = stop - (uint64_t)left, avr->pc = pc) /* for callbacks */
#define READABLE is_ours(sim, at->r, (const void *)avr->io[at->r - TL_IO].r.c)
#define WRITABLE is_ours(sim, at->r, (const void *)avr->io[at->r - TL_IO].w.c)
#define SKIP(condition) do { \
    if (!(condition)) NEXT(2, 1); \
    if (tl_is_long(word_at(avr, pc + 2))) NEXT(6, 3); \
    NEXT(4, 2); } while (0)

/* Whether an I/O register is mere memory, or of a port whose callbacks set no timer and raise no interrupt. */
static inline int is_ours(const tl_sim *sim, uint8_t address, const void *callback)
{
    if (address == TL_IO + 0x3F || sim->avr->io[address - TL_IO].irq)
        return 0;
    return !callback || (sim->on_pins && address >= PORTS && address <= PORTS_END);
}

static uint8_t read_io(avr_t *avr, uint8_t address)
{
    if (avr->io[address - TL_IO].r.c)
        avr->data[address] = avr->io[address - TL_IO].r.c(avr, address, avr->io[address - TL_IO].r.param);
    return avr->data[address];
}

static void write_io(avr_t *avr, uint8_t address, uint8_t value)
{
    if (avr->io[address - TL_IO].w.c)
        avr->io[address - TL_IO].w.c(avr, address, value, avr->io[address - TL_IO].w.param);
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
    static const void *const labels[] = {TL_OPS(LABEL)};
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
    address = PAIR(TL_Z);
    if (address > avr->flashend) goto do_LEFT;
    R[at->d] = avr->flash[address];
    NEXT(2, 3);
do_LPM_INC:
    address = PAIR(TL_Z);
    if (address > avr->flashend || (at->d | 1) == (TL_Z | 1)) goto do_LEFT;
    R[at->d] = avr->flash[address];
    SET_PAIR(TL_Z, address + 1);
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
do_IJMP: pc = 2u * PAIR(TL_Z); NEXT(0, 2);
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
    pc = 2u * PAIR(TL_Z);
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
    if (at->r == TL_IO + 0x3F) {
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
