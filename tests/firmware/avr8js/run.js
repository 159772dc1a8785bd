// Runs the firmware in avr8js, a second emulator: node run.js < {"hex": ..., "kernel": and "layers": byte addresses, "requests": [hex, ...]}
// To stdout: for each request the reply (hex) and how many cycles the call of the kernel took, from its first instruction to its
// return, and how many of them from "layers" on (null if there was none).
const { readFileSync } = require("node:fs");
const { AVRTimer, AVRUSART, CPU, avrInstruction, timer0Config, timer1Config, usart0Config } = require("avr8js");

const F_CPU_HZ = 16e6;
const BYTE_CYCLES = 1360; // between two bytes of a request
const LIMIT_CYCLES = 4e6; // for an answer

function program(hex) {
  const flash = new Uint8Array(0x8000).fill(0xff);
  for (const line of hex.split(/\r?\n/)) {
    const bytes = Buffer.from(line.slice(1), "hex");
    if (bytes.length && bytes[3] === 0) flash.set(bytes.subarray(4, 4 + bytes[0]), bytes.readUInt16BE(1));
  }
  return new Uint16Array(flash.buffer);
}

const job = JSON.parse(readFileSync(0, "utf8"));
const cpu = new CPU(program(job.hex), 0x800);
new AVRTimer(cpu, timer0Config);
new AVRTimer(cpu, timer1Config);
const usart = new AVRUSART(cpu, usart0Config, F_CPU_HZ);
let sent = [];
usart.onByteTransmit = (byte) => sent.push(byte);

let entered = null; // cycle and stack pointer at the kernel's first instruction
let scaled = null; // cycle at "layers"
let taken = null;
function step() {
  if (entered && cpu.SP === entered.sp + 2) {
    taken = [cpu.cycles - entered.cycle, cpu.cycles - scaled];
    entered = null;
  }
  if (cpu.pc * 2 === job.layers) scaled = cpu.cycles;
  if (cpu.pc * 2 === job.kernel) entered = { cycle: cpu.cycles, sp: cpu.SP };
  avrInstruction(cpu);
  cpu.tick();
}

function runFor(cycles) {
  for (const end = cpu.cycles + cycles; cpu.cycles < end; ) step();
}

const results = job.requests.map((request) => {
  sent = [];
  taken = null;
  for (const byte of Buffer.from(request, "hex")) {
    usart.writeByte(byte, true);
    runFor(BYTE_CYCLES);
  }
  for (const end = cpu.cycles + LIMIT_CYCLES; !sent.includes(0) && cpu.cycles < end; ) step();
  runFor(2 * BYTE_CYCLES); // avr8js drops a byte received just before the firmware writes UCSR0B
  return { reply: Buffer.from(sent).toString("hex"), cycles: taken && taken[0], layers: taken && taken[1] };
});
process.stdout.write(JSON.stringify(results));
