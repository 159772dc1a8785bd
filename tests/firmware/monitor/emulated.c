/* The monitor's firmware on an emulated ATmega328P: a chain of 74HC165 on its pins, a heartbeat, a button, and power.
 *
 *     emulated MONITOR.elf < SCRIPT
 *
 * Lines of the script; `run` and `kept` are answered by one line each:
 *   lamps RED YELLOW GREEN   sets of groups, as numbers
 *   beat 0|1                 whether the heartbeat goes on (an edge every 10 ms)
 *   button 0|1
 *   run MS                   says "relay R, led L" at the end, and "at US" of the last change of the relay, counted from its start
 *   power                    off and on again; the EEPROM stays
 *   kept                     says "kept REASON GROUP": what the EEPROM holds
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <simavr/avr_eeprom.h>
#include <simavr/avr_ioport.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>
#include <simavr/sim_irq.h>

enum { CYCLES_PER_MS = 16000, LOAD = 2, CLOCK = 3, DATA = 4, BEAT = 5, BUTTON = 6, RELAY = 7, LED = 5, BEAT_MS = 10 };

static avr_t *avr;
static uint32_t red, yellow, green;
static uint64_t chain;
static int is_loaded, beats = 1, pressed, beat_level, relay = -1;
static avr_cycle_count_t relay_changed;

static void set_pin(int pin, int level) {
    avr_raise_irq(avr_io_getirq(avr, AVR_IOCTL_IOPORT_GETIRQ('D'), pin), (uint32_t)level);
}

/* The button holds its pin at a level even against the chip's pull-up. */
static void set_button(void) {
    avr_ioport_external_t button = {.name = 'D', .mask = 1 << BUTTON, .value = (unsigned)!pressed << BUTTON};
    avr_ioctl(avr, AVR_IOCTL_IOPORT_SET_EXTERNAL('D'), &button);
    set_pin(BUTTON, !pressed);
}

static void show_bit(void) {
    set_pin(DATA, (int)(chain & 1));
}

/* A 74HC165 follows its inputs while LOAD is low, and shifts at a rising clock. */
static void on_load(avr_irq_t *irq, uint32_t level, void *unused) {
    (void)irq, (void)unused;
    is_loaded = level != 0;
    chain = 0;
    for (int group = 15; group >= 0; group--) {
        chain = chain << 3 | (green >> group & 1) << 2 | (yellow >> group & 1) << 1 | (red >> group & 1);
    }
    show_bit();
}

static void on_clock(avr_irq_t *irq, uint32_t level, void *unused) {
    (void)unused;
    if (level != 0 && irq->value == 0 && is_loaded) {
        chain >>= 1;
        show_bit();
    }
}

static void on_relay(avr_irq_t *irq, uint32_t level, void *unused) {
    (void)irq, (void)unused;
    if ((int)level != relay) {
        relay = (int)level;
        relay_changed = avr->cycle;
    }
}

/* A sleeping chip is taken ahead to its next event; its caller counts the cycles. */
static void skip_sleep(avr_t *chip, avr_cycle_count_t cycles) {
    (void)chip, (void)cycles;
}

static void on_log(avr_t *chip, const int level, const char *format, va_list arguments) {
    (void)chip, (void)level, (void)format, (void)arguments;
}

static void power_on(elf_firmware_t *firmware, const uint8_t *eeprom) {
    avr = avr_make_mcu_by_name("atmega328p");
    if (avr == NULL) {
        exit(2);
    }
    avr_init(avr);
    avr->frequency = 16000000;
    avr_load_firmware(avr, firmware);
    avr->sleep = skip_sleep;
    if (eeprom != NULL) {
        avr_eeprom_desc_t content = {.ee = (uint8_t *)eeprom, .offset = 0, .size = 1024};
        avr_ioctl(avr, AVR_IOCTL_EEPROM_SET, &content);
    }
    relay = -1;
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_IOPORT_GETIRQ('D'), LOAD), on_load, NULL);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_IOPORT_GETIRQ('D'), CLOCK), on_clock, NULL);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_IOPORT_GETIRQ('D'), RELAY), on_relay, NULL);
    set_button();
}

static const uint8_t *read_eeprom(void) {
    static uint8_t kept[1024];
    avr_eeprom_desc_t content = {.ee = kept, .offset = 0, .size = sizeof kept};
    avr_ioctl(avr, AVR_IOCTL_EEPROM_GET, &content);
    return kept;
}

static void power_cycle(elf_firmware_t *firmware) {
    const uint8_t *kept = read_eeprom();
    avr_terminate(avr);
    power_on(firmware, kept);
}

static void run(unsigned ms) {
    const avr_cycle_count_t start = avr->cycle;
    for (unsigned count = 0; count < ms; count++) {
        const avr_cycle_count_t end = start + (avr_cycle_count_t)(count + 1) * CYCLES_PER_MS;
        if (beats && count % BEAT_MS == 0) {
            beat_level = !beat_level;
            set_pin(BEAT, beat_level);
        }
        while (avr->cycle < end) {
            if (avr_run(avr) >= cpu_Done) {
                printf("dead\n");
                exit(1);
            }
        }
    }
    avr_ioport_state_t port;
    avr_ioctl(avr, AVR_IOCTL_IOPORT_GETSTATE('B'), &port);
    const long long changed = relay_changed < start ? -1 : (long long)(relay_changed - start) / 16;
    printf("relay %d, led %lu, at %lld\n", relay, (unsigned long)(port.port >> LED & 1), changed);
}

int main(int argc, char **argv) {
    static elf_firmware_t firmware;
    char line[128];
    unsigned ms, a, b, c;
    avr_global_logger_set(on_log);
    if (argc != 2 || elf_read_firmware(argv[1], &firmware) != 0) {
        return 2;
    }
    power_on(&firmware, NULL);
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "lamps %u %u %u", &a, &b, &c) == 3) {
            red = a, yellow = b, green = c;
        } else if (sscanf(line, "beat %u", &a) == 1) {
            beats = (int)a;
        } else if (sscanf(line, "button %u", &a) == 1) {
            pressed = (int)a;
            set_button();
        } else if (sscanf(line, "run %u", &ms) == 1) {
            run(ms);
        } else if (strcmp(line, "power\n") == 0) {
            power_cycle(&firmware);
        } else if (strcmp(line, "kept\n") == 0) {
            const uint8_t *kept = read_eeprom();
            printf("kept %u %u\n", kept[0], kept[1]);
        } else {
            return 2;
        }
    }
    return 0;
}
