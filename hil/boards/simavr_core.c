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
    SRAM = 0x100, SPL = 0x5D, /* data addresses */
    PORTS = 0x23, PORTS_END = 0x2B,
};

#define LABEL(op) &&do_##op,

static inline uint16_t word_at(const uint8_t *flash, size_t pc)
{
    uint16_t word;
    memcpy(&word, flash + pc, sizeof word);
    return word;
}

/* Both bytes at once: the host waits where it is to read at once what was written in two parts. */
static inline void set_pair(uint8_t *at, uint16_t value)
{
    memcpy(at, &value, sizeof value);
}

#define PAIR(at) ((uint16_t)(R[at] | R[(at) + 1] << 8))
#define SET_PAIR(at, value) set_pair(R + (at), (uint16_t)(value))
#define IN_SRAM(address) ((uint16_t)((address) - SRAM) <= last)
/* On with what is at pc. Written out behind each instruction, the processor foresees where the next jump goes. */
#define DISPATCH do { \
    if (left <= 0) goto do_LEFT; \
    at = (tl_decoded *)((char *)all_decoded + pc * (sizeof *at / 2)); \
    if (__builtin_expect(at->word != word_at(flash, pc), 0)) goto decode; \
    goto *labels[at->op]; } while (0)
#define NEXT(bytes, cycles) do { pc += (bytes); left -= (cycles); DISPATCH; } while (0)
#define JUMP(address, cycles) do { pc = (uint32_t)(address); left -= (cycles); if (pc >= end) goto do_LEFT; DISPATCH; } while (0)
#define BRANCH(condition) do { if (condition) JUMP(pc + 2 + (uint32_t)at->k, 2); NEXT(2, 1); } while (0)

/* The flags, as they are kept while instructions run here. After a sum or difference w of a and b, a ^ b ^ w has in bit n what bit n
 * was carried, or borrowed: C is bit 8 of `carries`, H bit 4; V is whether bits 7 and 8 of `over` differ; N is bit 7 of `nega`; Z is
 * whether `zero` is 0; S, as it should be, N ^ V. T and I are where simavr has them. */
#define SIGN_BIT 0x80
#define CARRY (carries >> 8 & 1)
#define SET_CARRY(bit) (carries = (carries & 0x10) | (unsigned)(bit) << 8)
#define IS_OVER ((over ^ over >> 1) & SIGN_BIT)
#define TAKE_FLAGS \
    (carries = (unsigned)F[S_C] << 8 | (unsigned)F[S_H] << 4, zero = !F[S_Z], nega = (unsigned)F[S_N] << 7, over = (unsigned)F[S_V] << 7)
#define GIVE_FLAGS \
    (F[S_C] = CARRY, F[S_H] = carries >> 4 & 1, F[S_Z] = zero == 0, F[S_N] = nega >> 7 & 1, F[S_V] = IS_OVER != 0, F[S_S] = F[S_N] ^ F[S_V])
#define LOGIC(expression) do { zero = nega = (expression) & 0xFF; over = 0; R[at->d] = (uint8_t)zero; NEXT(2, 1); } while (0)
#define ARITHMETIC(first, second, operation, carry, keeps, zero_before) do { \
    unsigned a = (first), b = (uint8_t)(second), w = a operation b operation (carry), before = (zero_before); \
    if (keeps) R[at->d] = (uint8_t)w; \
    over = carries = a ^ b ^ w; nega = w; zero = (uint8_t)w | before; NEXT(2, 1); } while (0)
#define ADDITION(carry) ARITHMETIC(R[at->d], R[at->r], +, carry, 1, 0)
#define SUBTRACTION(subtrahend, borrow, keeps, zero_before) ARITHMETIC(R[at->d], subtrahend, -, borrow, keeps, zero_before)
#define COUNT(step, limit) do { R[at->d] = (uint8_t)(R[at->d] step); nega = zero = R[at->d]; over = (zero == (limit)) << 7; NEXT(2, 1); } while (0)
#define SHIFT(result, carry) do { \
    unsigned c = (carry); zero = nega = (result); R[at->d] = (uint8_t)zero; SET_CARRY(c); over = zero | c << 8; NEXT(2, 1); } while (0)
#define WIDE(sum, carried, overflown) do { \
    unsigned a = PAIR(at->d), v = (uint16_t)(sum); \
    SET_PAIR(at->d, v); SET_CARRY((carried) >> 15 & 1); over = (overflown) >> 8 & SIGN_BIT; zero = v; nega = v >> 8; NEXT(2, 2); } while (0)
#define PRODUCT(value) do { unsigned v = (uint16_t)(value); SET_PAIR(TL_R0, v); SET_CARRY(v >> 15); zero = v; NEXT(2, 2); } while (0)
#define KEEP_TIME (avr->cycle = stop - (uint64_t)left, avr->pc = (uint32_t)pc) /* for callbacks */
#define READABLE is_ours(sim, at->r, (const void *)avr->io[at->r - TL_IO].r.c)
#define WRITABLE is_ours(sim, at->r, (const void *)avr->io[at->r - TL_IO].w.c)
#define SKIP(condition) do { \
    if (!(condition)) NEXT(2, 1); \
    if (tl_is_long(word_at(flash, pc + 2))) NEXT(6, 3); \
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
static void push_address(uint8_t *R, uint16_t sp, size_t pc)
{
    R[sp] = (uint8_t)(pc >> 1);
    R[sp - 1] = (uint8_t)(pc >> 9);
    set_pair(R + SPL, (uint16_t)(sp - 2));
}

/* Instructions that can be taken here, one after another, until one can't or the batch is over; returns the cycles left of it. */
static int64_t run_plain(tl_sim *sim, int64_t all)
{
    static const void *const labels[] = {TL_OPS(LABEL)};
    avr_t *avr = sim->avr;
    uint8_t *const R = avr->data, *const F = avr->sreg;
    const uint8_t *const flash = avr->flash;
    const uint16_t last = (uint16_t)(avr->ramend - SRAM);
    const uint32_t end = sim->code_end;
    const uint64_t stop = avr->cycle + (uint64_t)all;
    int64_t left = all;
    size_t pc = avr->pc; /* in bytes */
    tl_decoded *const all_decoded = sim->decoded, *at;
    unsigned carries, zero, nega, over;
    uint16_t address, sp;

    if (F[S_S] != (F[S_N] ^ F[S_V])) /* a program has set one alone: simavr goes on until they agree */
        return all;
    TAKE_FLAGS;
    JUMP(pc, 0);

decode: /* beyond the program nothing is decoded: its words are LEFT */
    if (pc >= end) goto do_LEFT;
    *at = tl_decode(word_at(flash, pc));
    goto *labels[at->op];

do_NOP: NEXT(2, 1);
do_MOVW: R[at->d] = R[at->r]; R[at->d + 1] = R[at->r + 1]; NEXT(2, 1);
do_MOV: R[at->d] = R[at->r]; NEXT(2, 1);
do_LDI: R[at->d] = (uint8_t)at->k; NEXT(2, 1);
do_MUL: PRODUCT(R[at->d] * R[at->r]);
do_MULS: PRODUCT((int8_t)R[at->d] * (int8_t)R[at->r]);
do_MULSU: PRODUCT((int8_t)R[at->d] * R[at->r]);
do_ADD: ADDITION(0);
do_ADC: ADDITION(CARRY);
do_SUB: SUBTRACTION(R[at->r], 0, 1, 0);
do_SBC: SUBTRACTION(R[at->r], CARRY, 1, zero);
do_CP: SUBTRACTION(R[at->r], 0, 0, 0);
do_CPC: SUBTRACTION(R[at->r], CARRY, 0, zero);
do_SUBI: SUBTRACTION(at->k, 0, 1, 0);
do_SBCI: SUBTRACTION(at->k, CARRY, 1, zero);
do_CPI: SUBTRACTION(at->k, 0, 0, 0);
do_AND: LOGIC(R[at->d] & R[at->r]);
do_OR: LOGIC(R[at->d] | R[at->r]);
do_EOR: LOGIC(R[at->d] ^ R[at->r]);
do_ANDI: LOGIC(R[at->d] & at->k);
do_ORI: LOGIC(R[at->d] | at->k);
do_COM: SET_CARRY(1); LOGIC(~(unsigned)R[at->d]);
do_NEG: ARITHMETIC(0, R[at->d], -, 0, 1, 0);
do_SWAP: R[at->d] = (uint8_t)(R[at->d] >> 4 | R[at->d] << 4); NEXT(2, 1);
do_INC: COUNT(+ 1, 0x80);
do_DEC: COUNT(- 1, 0x7F);
do_ASR: SHIFT((R[at->d] >> 1 | (R[at->d] & 0x80u)), R[at->d] & 1u);
do_LSR: SHIFT((unsigned)R[at->d] >> 1, R[at->d] & 1u);
do_ROR: SHIFT((unsigned)R[at->d] >> 1 | CARRY << 7, R[at->d] & 1u);
do_ADIW: WIDE(a + (unsigned)at->k, a & ~v, ~a & v);
do_SBIW: WIDE(a - (unsigned)at->k, ~a & v, a & ~v);
do_BSET: GIVE_FLAGS; F[at->k] = 1; TAKE_FLAGS; NEXT(2, 1);
do_BCLR: GIVE_FLAGS; F[at->k] = 0; TAKE_FLAGS; NEXT(2, 1);
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
    address = word_at(flash, pc + 2);
    if (!IN_SRAM(address)) goto do_LEFT;
    R[at->d] = R[address];
    NEXT(4, 2);
do_STS:
    address = word_at(flash, pc + 2);
    if (!IN_SRAM(address)) goto do_LEFT;
    R[address] = R[at->d];
    NEXT(4, 2);
do_LPM:
    address = PAIR(TL_Z);
    if (address > avr->flashend) goto do_LEFT;
    R[at->d] = flash[address];
    NEXT(2, 3);
do_LPM_INC:
    address = PAIR(TL_Z);
    if (address > avr->flashend || (at->d | 1) == (TL_Z | 1)) goto do_LEFT;
    R[at->d] = flash[address];
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

do_RJMP: JUMP(pc + 2 + (uint32_t)at->k, 2);
do_JMP: JUMP(2u * word_at(flash, pc + 2), 3);
do_IJMP: JUMP(2u * PAIR(TL_Z), 2);
do_RCALL:
    sp = PAIR(SPL);
    if (!IN_SRAM(sp - 1) || !IN_SRAM(sp)) goto do_LEFT;
    push_address(R, sp, pc + 2);
    JUMP(pc + 2 + (uint32_t)at->k, 3);
do_CALL:
    sp = PAIR(SPL);
    if (!IN_SRAM(sp - 1) || !IN_SRAM(sp)) goto do_LEFT;
    push_address(R, sp, pc + 4);
    JUMP(2u * word_at(flash, pc + 2), 4);
do_ICALL:
    sp = PAIR(SPL);
    if (!IN_SRAM(sp - 1) || !IN_SRAM(sp)) goto do_LEFT;
    push_address(R, sp, pc + 2);
    JUMP(2u * PAIR(TL_Z), 3);
do_RET:
    sp = (uint16_t)(PAIR(SPL) + 2);
    if (!IN_SRAM(sp - 1) || !IN_SRAM(sp)) goto do_LEFT;
    address = (uint16_t)(R[sp] | R[sp - 1] << 8);
    SET_PAIR(SPL, sp);
    JUMP(2u * address, 4);
do_BRCS: BRANCH(carries & 0x100);
do_BRCC: BRANCH(!(carries & 0x100));
do_BREQ: BRANCH(zero == 0);
do_BRNE: BRANCH(zero != 0);
do_BRMI: BRANCH(nega & SIGN_BIT);
do_BRPL: BRANCH(!(nega & SIGN_BIT));
do_BRVS: BRANCH(IS_OVER);
do_BRVC: BRANCH(!IS_OVER);
do_BRLT: BRANCH((nega & SIGN_BIT) != IS_OVER);
do_BRGE: BRANCH((nega & SIGN_BIT) == IS_OVER);
do_BRHS: BRANCH(carries & 0x10);
do_BRHC: BRANCH(!(carries & 0x10));
do_BRBS: BRANCH(F[at->d]); /* T and I */
do_BRBC: BRANCH(!F[at->d]);
do_CPSE: SKIP(R[at->d] == R[at->r]);
do_SBRC: SKIP(!(R[at->d] >> at->k & 1));
do_SBRS: SKIP(R[at->d] >> at->k & 1);

do_IN:
    if (at->r == TL_IO + 0x3F) {
        uint8_t flags = 0;
        GIVE_FLAGS;
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
    GIVE_FLAGS;
    avr->cycle = stop - (uint64_t)left;
    avr->pc = (uint32_t)pc;
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
