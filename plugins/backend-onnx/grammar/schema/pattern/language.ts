import { anyChar, type CharSet, contains, union } from "./char-set.ts"
import { refuse } from "./parser.ts"

/** A language, by its number in `Languages`. */
export type Term = number

type Shape =
  | { readonly kind: "empty" | "never" }
  | { readonly kind: "set"; readonly set: CharSet }
  | { readonly kind: "concat"; readonly head: Term; readonly tail: Term }
  | { readonly kind: "or" | "and"; readonly parts: readonly Term[] }
  | { readonly kind: "not"; readonly of: Term }
  | { readonly kind: "repeat"; readonly of: Term; readonly least: number; readonly most: number }
  /** A language that is defined by an equation with itself in it. */
  | { readonly kind: "loop" }

const mostTerms = 200_000
/** Classes like `\p{L}` have hundreds of ranges each. */
const mostRanges = 200_000
const endless = Number.POSITIVE_INFINITY

/**
 * Regular languages with intersection and complement, each stored once. Their derivatives (the
 * texts that may follow a character) make automata of them.
 */
export class Languages {
  private readonly shapes: Shape[] = []
  private readonly known = new Map<string, Term>()
  private readonly definitions = new Map<Term, Term>()
  private readonly derivatives = new Map<string, Term>()
  private readonly nullables = new Map<Term, boolean>()
  private readonly bounds = new Map<Term, readonly [number, number]>()
  private readonly plain: boolean[] = []
  private ranges = 0
  private readonly mostWork: number
  readonly empty = this.add("empty", { kind: "empty" })
  readonly never = this.add("never", { kind: "never" })
  readonly anything = this.repeat(this.set(anyChar), 0, endless)

  constructor(mostWork: number) {
    this.mostWork = mostWork
  }

  /** How many derivatives were taken. */
  get work(): number {
    return this.derivatives.size
  }

  private add(key: string, shape: Shape): Term {
    const known = this.known.get(key)
    if (known !== undefined) return known
    if (this.shapes.length >= mostTerms) refuse("it is too complex to be written out")
    const term = this.shapes.push(shape) - 1
    this.known.set(key, term)
    this.plain.push(
      !["and", "not", "loop"].includes(shape.kind) &&
        this.inside(term).every((part) => this.plain[part]),
    )
    return term
  }

  shape(term: Term): Shape {
    return this.shapes[term]!
  }

  set(set: CharSet): Term {
    if (set.length === 0) return this.never
    const key = `s${set.join(",")}`
    if (!this.known.has(key)) this.ranges += set.length / 2
    if (this.ranges > mostRanges) refuse("it is too complex to be written out")
    return this.add(key, { kind: "set", set })
  }

  concat(head: Term, tail: Term): Term {
    if (head === this.never || tail === this.never) return this.never
    if (head === this.empty) return tail
    if (tail === this.empty) return head
    const first = this.shape(head)
    if (first.kind === "concat") return this.concat(first.head, this.concat(first.tail, tail))
    const rest = this.shape(tail)
    // the ways to go on after one character may be split
    if (first.kind === "set" && rest.kind === "and")
      return this.and(rest.parts.map((part) => this.concat(head, part)))
    const begins = rest.kind === "concat" ? rest.head : tail
    if (head === this.anything && begins === head) return tail
    return this.add(`c${head},${tail}`, { kind: "concat", head, tail })
  }

  private flat(kind: "or" | "and", terms: readonly Term[]): Set<Term> {
    return new Set(
      terms.flatMap((term) => {
        const shape = this.shape(term)
        return shape.kind === kind ? shape.parts : [term]
      }),
    )
  }

  private joined(kind: "or" | "and", terms: ReadonlySet<Term>, neutral: Term): Term {
    const parts = [...terms].sort((a, b) => a - b)
    if (parts.length === 0) return neutral
    return parts.length === 1 ? parts[0]! : this.add(`${kind}${parts.join(",")}`, { kind, parts })
  }

  or(terms: readonly Term[]): Term {
    const parts = this.flat("or", terms)
    parts.delete(this.never)
    if (parts.has(this.anything)) return this.anything
    const sets = [...parts].filter((part) => this.shape(part).kind === "set")
    if (sets.length > 1) {
      for (const set of sets) parts.delete(set)
      parts.add(
        this.set(union(sets.map((set) => (this.shape(set) as { readonly set: CharSet }).set))),
      )
    }
    return this.joined("or", parts, this.never)
  }

  and(terms: readonly Term[]): Term {
    const parts = this.flat("and", terms)
    parts.delete(this.anything)
    if (parts.has(this.never)) return this.never
    if (parts.has(this.empty) && [...parts].every((part) => !this.hasLoop(part)))
      return [...parts].every((part) => this.isNullable(part)) ? this.empty : this.never
    return this.joined("and", parts, this.anything)
  }

  not(of: Term): Term {
    if (of === this.never) return this.anything
    if (of === this.anything) return this.never
    const shape = this.shape(of)
    return shape.kind === "not" ? shape.of : this.add(`n${of}`, { kind: "not", of })
  }

  repeat(of: Term, least: number, most: number): Term {
    if (most === 0 || of === this.empty) return this.empty
    if (of === this.never) return least === 0 ? this.empty : this.never
    if (least === 1 && most === 1) return of
    return this.add(`r${of},${least},${most}`, { kind: "repeat", of, least, most })
  }

  loop(): Term {
    return this.add(`l${this.shapes.length}`, { kind: "loop" })
  }

  define(loop: Term, term: Term): void {
    this.definitions.set(loop, term)
  }

  inside(term: Term): readonly Term[] {
    const shape = this.shape(term)
    if (shape.kind === "concat") return [shape.head, shape.tail]
    if (shape.kind === "or" || shape.kind === "and") return shape.parts
    if (shape.kind === "not" || shape.kind === "repeat") return [shape.of]
    const defined = this.definitions.get(term)
    return defined === undefined ? [] : [defined]
  }

  /** Whether it is written without intersections, complements and loops. */
  isPlain(term: Term): boolean {
    return this.plain[term]!
  }

  /** Returns what a term is a sequence of. */
  sequence(term: Term): readonly Term[] {
    const parts: Term[] = []
    let rest = term
    for (let shape = this.shape(rest); shape.kind === "concat"; shape = this.shape(rest)) {
      parts.push(shape.head)
      rest = shape.tail
    }
    return [...parts, rest]
  }

  private hasLoop(term: Term): boolean {
    if (this.isPlain(term)) return false
    return this.shape(term).kind === "loop" || this.inside(term).some((part) => this.hasLoop(part))
  }

  /** Returns bounds of the number of characters in its texts. */
  lengths(term: Term): readonly [number, number] {
    const known = this.bounds.get(term)
    if (known !== undefined) return known
    const shape = this.shape(term)
    const each = () => this.inside(term).map((part) => this.lengths(part))
    const least = () => each().map(([fewest]) => fewest)
    const most = () => each().map(([, longest]) => longest)
    const sum = (all: readonly number[]) => all.reduce((total, one) => total + one, 0)
    let found: readonly [number, number] = [0, endless]
    if (shape.kind === "empty" || shape.kind === "never") found = [0, 0]
    else if (shape.kind === "set") found = [1, 1]
    else if (shape.kind === "concat") {
      const all = this.sequence(term).map((part) => this.lengths(part))
      found = [sum(all.map(([fewest]) => fewest)), sum(all.map(([, longest]) => longest))]
    } else if (shape.kind === "or") found = [Math.min(...least()), Math.max(...most())]
    else if (shape.kind === "and") found = [Math.max(...least()), Math.min(...most())]
    else if (shape.kind === "repeat") {
      const [fewest, longest] = this.lengths(shape.of)
      found = [fewest * shape.least, longest === 0 ? 0 : longest * shape.most]
    }
    this.bounds.set(term, found)
    return found
  }

  /** Whether the empty text is in the language. */
  isNullable(term: Term): boolean {
    const known = this.nullables.get(term)
    if (known !== undefined) return known
    const shape = this.shape(term)
    // the smallest solution of its equation
    if (shape.kind === "loop") this.nullables.set(term, false)
    const every = () => this.inside(term).every((part) => this.isNullable(part))
    const some = () => this.inside(term).some((part) => this.isNullable(part))
    let is: boolean
    if (shape.kind === "empty") is = true
    else if (shape.kind === "never" || shape.kind === "set") is = false
    else if (shape.kind === "or" || shape.kind === "loop") is = some()
    else if (shape.kind === "not") is = !every()
    else is = (shape.kind === "repeat" && shape.least === 0) || every()
    this.nullables.set(term, is)
    return is
  }

  /** Returns the texts that follow a character in texts of the language. */
  derivative(term: Term, code: number): Term {
    const key = `${term},${code}`
    const known = this.derivatives.get(key)
    if (known === pending) refuse("a repeated part that may be empty, with a lookaround")
    if (known !== undefined) return known
    if (this.work >= this.mostWork) refuse("it is too complex to be written out")
    this.derivatives.set(key, pending)
    const found = this.follow(term, code)
    this.derivatives.set(key, found)
    return found
  }

  private follow(term: Term, code: number): Term {
    const shape = this.shape(term)
    const each = () => this.inside(term).map((part) => this.derivative(part, code))
    if (shape.kind === "set") return contains(shape.set, code) ? this.empty : this.never
    if (shape.kind === "or" || shape.kind === "loop") return this.or(each())
    if (shape.kind === "and") return this.and(each())
    if (shape.kind === "not") return this.not(this.derivative(shape.of, code))
    if (shape.kind === "repeat") {
      const less = this.repeat(shape.of, Math.max(shape.least - 1, 0), shape.most - 1)
      return this.concat(this.derivative(shape.of, code), less)
    }
    if (shape.kind !== "concat") return this.never
    const after = this.concat(this.derivative(shape.head, code), shape.tail)
    return this.isNullable(shape.head) ? this.or([after, this.derivative(shape.tail, code)]) : after
  }
}

const pending = -1
