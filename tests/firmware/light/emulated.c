/* The light's firmware on an emulated ATmega328P: chains of 74HC595 and 74HC165 on its pins, a serial line, and power.
 *
 *     emulated FIRMWARE.elf F_CPU_HZ LAMP_LINES < SCRIPT
 *
 * Lines of the script:
 *   run TICKS          of 10 ms of this chip's clock
 *   lines HEX          what the detectors show from now on; line 0 is the lowest bit
 *   send HEX           bytes for the serial line, at 115200 baud
 *   reset              by the pin
 *   brown              by a brown-out, with noise in RAM
 *   power              off and on again; the EEPROM stays
 *   hang ADDRESS       throws the program there, interrupts off
 *   flash ADDRESS HEX  changes bytes of the program
 *   ram ADDRESS HEX    and of the memory
 *   eeprom ADDRESS HEX and of the EEPROM
 *   cycles             says "cycles AWAKE ALL" since the start
 *   kept               says "kept HEX": the EEPROM's first 32 bytes
 * Answers, each with the cycle since the start:
 *   lamps CYCLE HEX    the chain at a latch, line 0 the lowest bit, where it has changed
 *   uart CYCLE HEX     a byte sent
 *   beat CYCLE COUNT   edges of the heartbeat in a `run`, and whether all came within a tick of each other: "even" or "uneven"
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <simavr/avr_eeprom.h>
#include <simavr/avr_extint.h>
#include <simavr/avr_ioport.h>
#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>
#include <simavr/sim_interrupts.h>
#include <simavr/sim_irq.h>

enum { LATCH = 2, CLOCK = 3, DATA = 4, BEAT = 5, LOAD = 0, SHIFT = 1, CHAIN_END = 2, BAUD = 115200, ROOM = 4096, VECTORS = 26 };
enum { ENTRY_CYCLES = 4 }; /* of an interrupt: none in simavr */
enum { BATCH_CYCLES = 1 << 20 };

static avr_t *avr;
static avr_run_t plain_run;
static elf_firmware_t firmware;
static unsigned f_cpu_hz, lamp_lines, data_level;
static unsigned __int128 chain, latched, shown, levels, loaded;
static int is_shown, is_loading;
static uint8_t to_send[ROOM];
static unsigned send_first, send_count;
static avr_cycle_count_t next_byte, last_beat, longest_beat, asleep, passed;
static unsigned beats;

static avr_cycle_count_t now(void) {
    return passed + avr->cycle;
}

static void print_number(const char *what, unsigned __int128 number) {
    printf("%s %llu %llx%016llx\n", what, (unsigned long long)now(), (unsigned long long)(number >> 64),
           (unsigned long long)number);
}

static avr_irq_t *pin(char port, int number) {
    return avr_io_getirq(avr, AVR_IOCTL_IOPORT_GETIRQ(port), number);
}

static void on_clock(avr_irq_t *irq, uint32_t level, void *unused) {
    (void)unused;
    if (level != 0 && irq->value == 0) {
        chain = chain << 1 | data_level;
    }
}

static void on_data(avr_irq_t *irq, uint32_t level, void *unused) {
    (void)irq, (void)unused;
    data_level = level != 0;
}

static void on_latch(avr_irq_t *irq, uint32_t level, void *unused) {
    (void)unused;
    if (level != 0 && irq->value == 0) {
        latched = chain & (((unsigned __int128)1 << lamp_lines) - 1);
        if (latched != shown || !is_shown) {
            shown = latched;
            is_shown = 1;
            print_number("lamps", shown);
        }
    }
}

static void on_beat(avr_irq_t *irq, uint32_t level, void *unused) {
    (void)unused;
    if ((level != 0) != (irq->value != 0)) {
        if (last_beat != 0 && now() - last_beat > longest_beat) {
            longest_beat = now() - last_beat;
        }
        last_beat = now();
        beats++;
    }
}

static void show_end(void) {
    avr_raise_irq(pin('B', CHAIN_END), (uint32_t)(loaded & 1));
}

static void on_load(avr_irq_t *irq, uint32_t level, void *unused) {
    (void)irq, (void)unused;
    is_loading = level == 0;
    loaded = levels;
    show_end();
}

static void on_shift(avr_irq_t *irq, uint32_t level, void *unused) {
    (void)unused;
    if (level != 0 && irq->value == 0 && !is_loading) {
        loaded >>= 1;
        show_end();
    }
}

static void on_byte(avr_irq_t *irq, uint32_t value, void *unused) {
    (void)irq, (void)unused;
    printf("uart %llu %02x\n", (unsigned long long)now(), (unsigned)value & 0xFF);
}

static void on_interrupt(avr_irq_t *irq, uint32_t running, void *unused) {
    (void)irq, (void)unused;
    if (running != 0) {
        avr->cycle += ENTRY_CYCLES;
    }
}

static void skip_sleep(avr_t *chip, avr_cycle_count_t cycles) {
    (void)chip;
    asleep += cycles + 1; /* the caller counts them */
}

static void on_log(avr_t *chip, const int level, const char *format, va_list arguments) {
    (void)chip, (void)level, (void)format, (void)arguments;
}

/* simavr would look at the low pins of external interrupts once a cycle, and forgets at each reset that it should not. */
static void after_reset(void) {
    avr->run_cycle_limit = BATCH_CYCLES;
    for (uint8_t number = 0; number < 2; number++) {
        avr_extint_set_strict_lvl_trig(avr, number, 0);
    }
    last_beat = 0;
}

static void power_on(const uint8_t *eeprom) {
    avr = avr_make_mcu_by_name("atmega328p");
    if (avr == NULL) {
        exit(2);
    }
    avr_init(avr);
    avr->frequency = f_cpu_hz;
    avr_load_firmware(avr, &firmware);
    avr->sleep = skip_sleep;
    plain_run = avr->run;
    after_reset();
    if (eeprom != NULL) {
        avr_eeprom_desc_t content = {.ee = (uint8_t *)eeprom, .offset = 0, .size = 1024};
        avr_ioctl(avr, AVR_IOCTL_EEPROM_SET, &content);
    }
    uint32_t flags = 0;
    avr_ioctl(avr, AVR_IOCTL_UART_GET_FLAGS('0'), &flags);
    flags &= ~(uint32_t)(AVR_UART_FLAG_STDIO | AVR_UART_FLAG_POLL_SLEEP);
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
    avr_irq_register_notify(pin('D', CLOCK), on_clock, NULL);
    avr_irq_register_notify(pin('D', DATA), on_data, NULL);
    avr_irq_register_notify(pin('D', LATCH), on_latch, NULL);
    avr_irq_register_notify(pin('D', BEAT), on_beat, NULL);
    avr_irq_register_notify(pin('B', LOAD), on_load, NULL);
    avr_irq_register_notify(pin('B', SHIFT), on_shift, NULL);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUTPUT), on_byte, NULL);
    for (int vector = 1; vector < VECTORS; vector++) {
        avr_irq_t *irq = avr_get_interrupt_irq(avr, (uint8_t)vector);
        if (irq != NULL) {
            avr_irq_register_notify(irq + AVR_INT_IRQ_RUNNING, on_interrupt, NULL);
        }
    }
    avr_regbit_set(avr, avr->reset_flags.porf);
    last_beat = 0;
}

static const uint8_t *read_eeprom(void) {
    static uint8_t kept[1024];
    avr_eeprom_desc_t content = {.ee = kept, .offset = 0, .size = sizeof kept};
    avr_ioctl(avr, AVR_IOCTL_EEPROM_GET, &content);
    return kept;
}

static void power_cycle(void) {
    const uint8_t *kept = read_eeprom();
    passed += avr->cycle;
    avr_terminate(avr);
    power_on(kept);
}

static void reset(avr_regbit_t cause) {
    avr_reset(avr);
    avr_regbit_set(avr, cause);
    avr->run = plain_run;
    after_reset();
}

static void brown_out(void) {
    for (unsigned at = 0x100, seed = 1; at <= avr->ramend; at++) {
        seed = seed * 1664525u + 1013904223u;
        avr->data[at] = (uint8_t)(seed >> 24);
    }
    reset(avr->reset_flags.borf);
}

static void send_next(void) {
    if (send_count != 0 && now() >= next_byte) {
        avr_raise_irq(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_INPUT), to_send[send_first]);
        send_first = (send_first + 1) % ROOM;
        send_count--;
        next_byte = now() + 10 * f_cpu_hz / BAUD;
    }
}

static avr_cycle_count_t stop(avr_t *chip, avr_cycle_count_t when, void *unused) {
    (void)chip, (void)when, (void)unused;
    return 0;
}

static void run(unsigned ticks) {
    const avr_cycle_count_t end = now() + (avr_cycle_count_t)ticks * f_cpu_hz / 100;
    beats = 0;
    longest_beat = 0;
    while (now() < end) {
        send_next();
        const avr_cycle_count_t until = send_count != 0 && next_byte < end ? next_byte : end;
        const avr_cycle_count_t left = until > now() ? until - now() : 1;
        avr_cycle_timer_register(avr, left, stop, NULL);
        while (now() < until) {
            if (avr->run != plain_run) { /* the watchdog's reset */
                avr->run(avr);
                after_reset();
                printf("watchdog %llu 0\n", (unsigned long long)now());
                avr_cycle_timer_register(avr, until > now() ? until - now() : 1, stop, NULL);
            } else if (avr_run(avr) >= cpu_Done) {
                printf("dead\n");
                exit(1);
            }
        }
        avr_cycle_timer_cancel(avr, stop, NULL);
    }
    printf("beat %llu %u %s\n", (unsigned long long)now(), beats, longest_beat < f_cpu_hz / 50 ? "even" : "uneven");
}

static unsigned from_hex(const char *text, uint8_t *bytes, unsigned room) {
    unsigned count = 0, byte;
    while (count < room && sscanf(text + 2 * count, "%2x", &byte) == 1) {
        bytes[count++] = (uint8_t)byte;
    }
    return count;
}

int main(int argc, char **argv) {
    static char line[4 * ROOM];
    static uint8_t bytes[ROOM];
    unsigned number;
    int at;
    avr_global_logger_set(on_log);
    if (argc != 4 || elf_read_firmware(argv[1], &firmware) != 0) {
        return 2;
    }
    f_cpu_hz = (unsigned)atoi(argv[2]);
    lamp_lines = (unsigned)atoi(argv[3]);
    power_on(NULL);
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "run %u", &number) == 1) {
            run(number);
        } else if (strncmp(line, "lines ", 6) == 0) {
            levels = 0;
            for (const char *digit = line + 6; *digit > ' '; digit++) {
                levels = levels << 4 | (unsigned)(*digit <= '9' ? *digit - '0' : *digit - 'a' + 10);
            }
        } else if (strncmp(line, "send ", 5) == 0) {
            for (unsigned i = 0, count = from_hex(line + 5, bytes, ROOM); i < count; i++, send_count++) {
                to_send[(send_first + send_count) % ROOM] = bytes[i];
            }
        } else if (strcmp(line, "reset\n") == 0) {
            reset(avr->reset_flags.extrf);
        } else if (strcmp(line, "brown\n") == 0) {
            brown_out();
        } else if (strcmp(line, "power\n") == 0) {
            power_cycle();
        } else if (sscanf(line, "hang %u", &number) == 1) {
            avr->sreg[S_I] = 0;
            avr->state = cpu_Running;
            avr->pc = number;
        } else if (sscanf(line, "flash %u %n", &number, &at) == 1) {
            memcpy(avr->flash + number, bytes, from_hex(line + at, bytes, 64));
        } else if (sscanf(line, "ram %u %n", &number, &at) == 1) {
            memcpy(avr->data + number, bytes, from_hex(line + at, bytes, 64));
        } else if (sscanf(line, "eeprom %u %n", &number, &at) == 1) {
            avr_eeprom_desc_t content = {.ee = bytes, .offset = (uint16_t)number, .size = from_hex(line + at, bytes, 64)};
            avr_ioctl(avr, AVR_IOCTL_EEPROM_SET, &content);
        } else if (strcmp(line, "cycles\n") == 0) {
            printf("cycles %llu %llu\n", (unsigned long long)(now() - asleep), (unsigned long long)now());
        } else if (strcmp(line, "kept\n") == 0) {
            printf("kept 0 ");
            for (int i = 0; i < 32; i++) {
                printf("%02x", read_eeprom()[i]);
            }
            printf("\n");
        } else {
            return 2;
        }
    }
    return 0;
}
