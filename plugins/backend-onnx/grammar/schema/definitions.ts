import type { KeywordVerdict } from "../../../../core/ports/schema-checker.ts"
import type { SchemaLocation } from "./document.ts"
import type { EnforcedSchema } from "./reading.ts"

/** The verdicts on keywords, by their paths. */
export class Verdicts {
  private readonly byPath = new Map<string, KeywordVerdict>()

  all(): readonly KeywordVerdict[] {
    return [...this.byPath.values()]
  }

  /**
   * A schema may be read twice, for two types or from two references: the worst verdict counts.
   */
  record(verdict: KeywordVerdict): void {
    const known = this.byPath.get(verdict.path)
    if (
      known?.verdict === "refused" ||
      (known?.verdict === "enforced" && verdict.verdict === "annotation")
    )
      return
    // how it is enforced is known from the reading that said so
    const reason = verdict.reason ?? (known?.verdict === verdict.verdict ? known.reason : undefined)
    this.byPath.set(verdict.path, { ...verdict, ...(reason !== undefined && { reason }) })
  }
}

/** What is found while a schema is read aside. */
export class Aside {
  isExact = false
  enforced: EnforcedSchema = true
  readonly targets = new Set<string>()
  private readonly verdicts: KeywordVerdict[] = []

  add(verdict: KeywordVerdict): void {
    if (verdict.verdict === "refused") this.isExact = false
    this.verdicts.push(verdict)
  }

  kept(): readonly KeywordVerdict[] {
    return this.verdicts.filter(({ verdict }) => verdict !== "refused")
  }
}

/** The target of a `$ref`. */
export interface Definition {
  readonly name: string
  readonly place: SchemaLocation
  isReported: boolean
  aside?: Aside
}

/** The targets of `$ref`, with their names in `$defs`. */
export class Definitions {
  /** Definitions that are no schema of the document, by name. */
  readonly made = new Map<string, EnforcedSchema>()
  private readonly byKey = new Map<string, Definition>()
  private readonly waiting: Definition[] = []
  private names = 0

  newName(): string {
    return `d${this.names++}`
  }

  refer(key: string, place: SchemaLocation, isReported: boolean): Definition {
    const known = this.byKey.get(key) ?? { name: this.newName(), place, isReported: false }
    this.byKey.set(key, known)
    if (isReported && !known.isReported) {
      known.isReported = true
      this.waiting.push(known)
    }
    return known
  }

  /** All targets that some lead to; those that were read aside lead on. */
  *reachedFrom(keys: ReadonlySet<string>): Generator<Definition> {
    const seen = new Set(keys)
    for (const key of seen) {
      const definition = this.byKey.get(key)!
      yield definition
      for (const next of definition.aside?.targets ?? []) seen.add(next)
    }
  }

  /**
   * Reads all definitions; reading one may find more of them. Those that only schemas read aside
   * refer to are read aside, too.
   */
  readAll(
    read: (place: SchemaLocation) => EnforcedSchema,
    readAside: (definition: Definition) => EnforcedSchema,
  ): ReadonlyMap<string, EnforcedSchema> {
    const found = new Map<string, EnforcedSchema>()
    for (let next = this.waiting.shift(); next; next = this.waiting.shift())
      found.set(next.name, read(next.place))
    for (const definition of this.byKey.values())
      if (!found.has(definition.name)) found.set(definition.name, readAside(definition))
    return new Map([...found, ...this.made])
  }
}
