import type { Json } from "../../../../../core/json.ts"
import type { SchemaDocument, SchemaLocation } from "../document.ts"
import type { JsonObject } from "../json-value.ts"
import { PatternRefused } from "../pattern.ts"
import { type Effort, type LinearPattern, linearPattern } from "./linear-pattern.ts"

/** A value can't be judged. */
export class Undecided extends Error {
  override readonly name = "Undecided"
}

/** Whether a value satisfies a schema; `seen` collects what the schema evaluates of it. */
export type Check = (value: Json, run: Run, seen?: Evaluated) => boolean

export const isRule = (check: Check | undefined): check is Check => check !== undefined

/** Gives the checks of schemas. */
export interface Judging {
  readonly document: SchemaDocument
  check(place: SchemaLocation): Check
}

const deepest = 1_000

/** What is known of arrays and objects that may be judged again as parts of other values. */
export type Memory = WeakMap<object, Map<Check, boolean>>

/** The work of judging one value, or several, which is bounded. */
export class Run implements Effort {
  spent = 0
  private readonly most: number
  private depth = 0
  private readonly memory: Memory | undefined

  constructor(mostSteps: number, memory?: Memory) {
    this.most = mostSteps
    this.memory = memory
  }

  /** Begins with another value. */
  begin(): void {
    this.depth = 0
  }

  /** Returns what a schema said of a part before. */
  recall(check: Check, value: Json): boolean | undefined {
    if (!this.memory || typeof value !== "object" || value === null) return undefined
    return this.memory.get(value)?.get(check)
  }

  /** Keeps what a schema says of a part; the whole value is not asked for again. */
  remember(check: Check, value: Json, isValid: boolean): void {
    if (!this.memory || this.depth === 0 || typeof value !== "object" || value === null) return
    const known = this.memory.get(value)
    if (known) known.set(check, isValid)
    else this.memory.set(value, new Map([[check, isValid]]))
  }

  spend(steps: number): void {
    this.spent += steps
    if (this.spent > this.most) throw new Undecided("too much work")
  }

  /** A schema is applied. */
  enter(): void {
    this.spend(1)
    if (++this.depth > deepest) throw new Undecided("too deep")
  }

  leave(): void {
    this.depth--
  }
}

/** The properties and items that schemas evaluated, for `unevaluatedProperties` and its like. */
export class Evaluated {
  private readonly names = new Set<string>()
  private readonly items = new Set<number>()

  addName(name: string): void {
    this.names.add(name)
  }

  addItem(i: number): void {
    this.items.add(i)
  }

  add(other: Evaluated): void {
    for (const name of other.names) this.names.add(name)
    for (const i of other.items) this.items.add(i)
  }

  /** Whether all properties pass that were not evaluated before; they are afterwards. */
  restOfNames(value: JsonObject, passes: (part: Json) => boolean): boolean {
    const rest = Object.keys(value).filter((name) => !this.names.has(name))
    for (const name of rest) this.names.add(name)
    return rest.every((name) => passes(value[name]))
  }

  restOfItems(value: readonly Json[], passes: (part: Json) => boolean): boolean {
    const rest = [...value.keys()].filter((i) => !this.items.has(i))
    for (const i of rest) this.items.add(i)
    return rest.every((i) => passes(value[i]))
  }
}

/** Reads a pattern of a schema; one that can't be read leaves its texts undecided. */
export const patternRule = (pattern: string): LinearPattern => {
  try {
    return linearPattern(pattern)
  } catch (cause) {
    if (!(cause instanceof PatternRefused)) throw cause
    return () => {
      throw new Undecided(cause.message)
    }
  }
}

const keptPatterns = 500
const mostPatternSteps = 200_000
const patterns = new Map<string, LinearPattern>()

/** Whether a pattern matches somewhere in a text, such as a name. Undefined: undecided. */
export const matchesPattern = (pattern: string, text: string): boolean | undefined => {
  const rule = patterns.get(pattern) ?? patternRule(pattern)
  if (patterns.size >= keptPatterns) patterns.clear()
  patterns.set(pattern, rule)
  try {
    return rule(text, new Run(mostPatternSteps))
  } catch (cause) {
    if (!(cause instanceof Undecided)) throw cause
    return undefined
  }
}
