import { backtrackedSteps } from "../pattern/backtracking.ts"
import type { CharSet } from "../pattern/char-set.ts"
import type { PatternNode } from "../pattern/parser.ts"
import { ecmaPattern, PatternRefused, parse } from "../pattern.ts"

/** Counts the work of a match, and throws where it is too much. */
export interface Effort {
  spend(steps: number): void
}

/** Matches anywhere in a text, in time linear in the text and in the pattern. */
export type LinearPattern = (text: string, effort: Effort) => boolean

/** Up to this many steps the engine of this process is faster, though it backtracks. */
const mostBacktracked = 100_000

/** The maximum number of instructions; repetitions with a count are written out. */
const mostInstructions = 20_000

type Edge = "start" | "end" | "boundary" | "noBoundary"
type Repeat = PatternNode & { readonly kind: "repeat" }

type Instruction =
  | { readonly op: "set"; readonly has: (unit: number) => boolean }
  | { readonly op: "split"; readonly to: number; other: number }
  | { readonly op: "jump"; to: number }
  | { readonly op: "edge"; readonly edge: Edge }
  | { readonly op: "look"; readonly look: number; readonly isNegated: boolean }
  | { readonly op: "match" }

interface Program {
  readonly instructions: readonly Instruction[]
  /** Reads the text from its end to its start. */
  readonly isBackward: boolean
}

/** Writes the instructions of a pattern, and of its lookarounds before those that contain them. */
class Writer {
  readonly looks: Program[] = []
  private written = 0

  program(node: PatternNode, isBackward: boolean): Program {
    const instructions: Instruction[] = []
    this.write(node, instructions, isBackward)
    this.emit(instructions, { op: "match" })
    return { instructions, isBackward }
  }

  private emit<A extends Instruction>(into: Instruction[], instruction: A): A {
    if (++this.written > mostInstructions) throw new PatternRefused("too many repetitions")
    into.push(instruction)
    return instruction
  }

  private write(node: PatternNode, into: Instruction[], isBackward: boolean): void {
    if (node.kind === "set") this.emit(into, { op: "set", has: membershipOf(node.set) })
    else if (node.kind === "boundary")
      this.emit(into, { op: "edge", edge: node.isNegated ? "noBoundary" : "boundary" })
    else if (node.kind === "repeat") this.writeRepeat(node, into, isBackward)
    else if (node.kind === "reference") throw new PatternRefused("a reference to a group")
    else if ("parts" in node) this.writeParts(node, into, isBackward)
    else if ("of" in node) {
      // what lies ahead is found from the end of the text, what lies behind from its start
      this.looks.push(this.program(node.of, node.kind === "ahead"))
      this.emit(into, { op: "look", look: this.looks.length - 1, isNegated: node.isNegated })
    } else this.emit(into, { op: "edge", edge: node.kind })
  }

  private writeParts(
    { kind, parts }: Extract<PatternNode, { readonly parts: unknown }>,
    into: Instruction[],
    isBackward: boolean,
  ): void {
    if (kind === "or") this.writeOr(parts, into, isBackward)
    else
      for (const part of isBackward ? [...parts].reverse() : parts)
        this.write(part, into, isBackward)
  }

  private writeOr(options: readonly PatternNode[], into: Instruction[], isBackward: boolean) {
    const jumps: { to: number }[] = []
    for (const option of options.slice(0, -1)) {
      const split = this.emit(into, { op: "split", to: into.length + 1, other: 0 })
      this.write(option, into, isBackward)
      jumps.push(this.emit(into, { op: "jump", to: 0 }))
      split.other = into.length
    }
    this.write(options.at(-1)!, into, isBackward)
    for (const jump of jumps) jump.to = into.length
  }

  private writeRepeat(
    { of: part, least, most }: Repeat,
    into: Instruction[],
    isBackward: boolean,
  ): void {
    // each turn emits something, so that the limit on instructions bounds these loops
    for (let i = 0; i < least; i++) this.writeTurn(part, into, isBackward)
    if (most === Number.POSITIVE_INFINITY) {
      const start = into.length
      const split = this.emit(into, { op: "split", to: start + 1, other: 0 })
      this.write(part, into, isBackward)
      this.emit(into, { op: "jump", to: start })
      split.other = into.length
      return
    }
    const splits: { other: number }[] = []
    for (let i = least; i < most; i++) {
      splits.push(this.emit(into, { op: "split", to: into.length + 1, other: 0 }))
      this.write(part, into, isBackward)
    }
    for (const split of splits) split.other = into.length
  }

  private writeTurn(part: PatternNode, into: Instruction[], isBackward: boolean): void {
    const before = into.length
    this.write(part, into, isBackward)
    if (into.length === before) this.emit(into, { op: "jump", to: into.length + 1 })
  }
}

const ascii = 128

/** Whether a set has a character: at once for ASCII, by halving the ranges for others. */
const membershipOf = (set: CharSet): ((unit: number) => boolean) => {
  const known = new Uint8Array(ascii)
  for (let i = 0; i < set.length && set[i]! < ascii; i += 2)
    known.fill(1, set[i]!, Math.min(ascii, set[i + 1]! + 1))
  return (unit) => {
    if (unit < ascii) return known[unit] === 1
    let [low, high] = [0, set.length / 2]
    while (low < high) {
      const middle = (low + high) >> 1
      if (set[2 * middle + 1]! < unit) low = middle + 1
      else high = middle
    }
    return low < set.length / 2 && set[2 * low]! <= unit
  }
}

const isWord = (unit: number | undefined): boolean =>
  unit !== undefined && unit < 128 && /\w/.test(String.fromCharCode(unit))

const holds = (edge: Edge, units: readonly number[], at: number): boolean => {
  if (edge === "start") return at === 0
  if (edge === "end") return at === units.length
  return (isWord(units[at - 1]) !== isWord(units[at])) === (edge === "boundary")
}

/** One match of a pattern in a text: all its threads advance together. */
class Match {
  private readonly units: readonly number[]
  private readonly looks: readonly Program[]
  private readonly effort: Effort
  /** For each lookaround, the positions where its inside matches. */
  private readonly found: (Uint8Array | undefined)[] = []

  constructor(units: readonly number[], looks: readonly Program[], effort: Effort) {
    this.units = units
    this.looks = looks
    this.effort = effort
  }

  /** Calls `onMatch` for each position where a match ends; ends where that returns true. */
  scan({ instructions, isBackward }: Program, onMatch: (at: number) => boolean): void {
    const { length } = this.units
    const seen = new Int32Array(instructions.length)
    let pending: number[] = []
    for (let turn = 0; turn <= length; turn++) {
      const at = isBackward ? length - turn : turn
      // a match may begin at every position
      pending.push(0)
      const reading: number[] = []
      const isMatched = this.advance(instructions, { pending, reading, seen, turn: turn + 1, at })
      if (isMatched && onMatch(at)) return
      const unit = this.units[isBackward ? at - 1 : at]
      pending = unit === undefined ? [] : reading.filter((pc) => reads(instructions[pc]!, unit))
      pending.forEach((pc, i, all) => {
        all[i] = pc + 1
      })
    }
  }

  /** Follows what reads no character. Returns whether a match ends here. */
  private advance(
    instructions: readonly Instruction[],
    state: {
      readonly pending: number[]
      readonly reading: number[]
      readonly seen: Int32Array
      readonly turn: number
      readonly at: number
    },
  ): boolean {
    const { pending, reading, seen, turn, at } = state
    let isMatched = false
    let steps = 0
    for (let pc = pending.pop(); pc !== undefined; pc = pending.pop()) {
      if (seen[pc] === turn) continue
      seen[pc] = turn
      steps++
      const one = instructions[pc]!
      if (one.op === "set") reading.push(pc)
      else if (one.op === "match") isMatched = true
      else if (one.op === "jump") pending.push(one.to)
      else if (one.op === "split") pending.push(one.other, one.to)
      else if (one.op === "edge") {
        if (holds(one.edge, this.units, at)) pending.push(pc + 1)
      } else if ((this.looked(one.look)[at] === 1) !== one.isNegated) pending.push(pc + 1)
    }
    this.effort.spend(steps)
    return isMatched
  }

  private looked(look: number): Uint8Array {
    const known = this.found[look]
    if (known) return known
    const positions = new Uint8Array(this.units.length + 1)
    this.scan(this.looks[look]!, (at) => {
      positions[at] = 1
      return false
    })
    this.found[look] = positions
    return positions
  }
}

const reads = (instruction: Instruction, unit: number): boolean =>
  instruction.op === "set" && instruction.has(unit)

/**
 * Compiles a pattern of ECMAScript, also with lookarounds, whose matches never backtrack far.
 * Throws `PatternRefused` for references to groups and too many repetitions.
 */
export const linearPattern = (pattern: string): LinearPattern => {
  const writer = new Writer()
  const { node, program } = compiled(writer, pattern)
  const rule = ecmaPattern(pattern)
  const steps = rule.unicode ? backtrackedSteps(node) : undefined
  return (text, effort) => {
    if (steps && steps(text.length) <= mostBacktracked) {
      effort.spend(1)
      return rule.test(text)
    }
    const units = Array.from(text, (char) => char.codePointAt(0)!)
    let isFound = false
    new Match(units, writer.looks, effort).scan(program, () => {
      isFound = true
      return true
    })
    return isFound
  }
}

const compiled = (
  writer: Writer,
  pattern: string,
): { readonly node: PatternNode; readonly program: Program } => {
  try {
    const node = parse(pattern)
    return { node, program: writer.program(node, false) }
  } catch (cause) {
    if (cause instanceof RangeError) throw new PatternRefused("it is nested too deeply")
    throw cause
  }
}

/** Returns why a pattern can't be matched so; undefined: it can. */
export const unreadPattern = (pattern: string): string | undefined => {
  try {
    linearPattern(pattern)
    return undefined
  } catch (cause) {
    if (!(cause instanceof PatternRefused)) throw cause
    return cause.message
  }
}
