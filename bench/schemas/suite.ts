import type { Json } from "../../core/json.ts"
import { GrammarInstance } from "../../plugins/backend-onnx/grammar/grammar-instance.ts"
import { byteVocabulary } from "../../plugins/backend-onnx/grammar/grammar-vocabulary.ts"
import { analyseSchema } from "../../plugins/backend-onnx/grammar/schema-report.ts"
import { GrammarFailed } from "../../plugins/backend-onnx/sampling/token-mask.ts"
import { jsonIn, type Named } from "./sources.ts"

interface Case {
  readonly description: string
  readonly schema: Json
  readonly tests: readonly {
    readonly description: string
    readonly data: Json
    readonly valid: boolean
  }[]
}

export interface SuiteCount {
  schemas: number
  kept: number
  refused: number
  unsatisfiable: number
  documents: number
  passing: number
  wronglyAccepted: string[]
  wronglyRejected: string[]
}

const orders = (data: Json): readonly Json[] => {
  if (typeof data !== "object" || data === null || Array.isArray(data)) return [data]
  const names = Object.keys(data)
  if (names.length > 4) return [data]
  const permutations = (rest: readonly string[]): readonly (readonly string[])[] =>
    rest.length === 0
      ? [[]]
      : rest.flatMap((name) =>
          permutations(rest.filter((other) => other !== name)).map((tail) => [name, ...tail]),
        )
  return permutations(names).map((order) =>
    Object.fromEntries(order.map((name) => [name, (data as Record<string, Json>)[name]])),
  )
}

const instance = new GrammarInstance(byteVocabulary())

const accepts = (matcher: number, text: string): boolean => {
  const clone = instance.clone(matcher)
  const accepted =
    Buffer.from(text).every((byte) => instance.consume(clone, byte)) && instance.isAccepting(clone)
  instance.free(clone)
  return accepted
}

/** The schema in its draft's dialect, named by the suite's folder. */
const compiled = (draft: string, schema: Json): number | "refused" | "unsatisfiable" => {
  const dialect = {
    draft4: "http://json-schema.org/draft-04/schema#",
    draft6: "http://json-schema.org/draft-06/schema#",
    draft7: "http://json-schema.org/draft-07/schema#",
  }[draft]
  const named =
    dialect && typeof schema === "object" && schema !== null && !("$schema" in schema)
      ? { $schema: dialect, ...schema }
      : schema
  try {
    const { refused, enforced } = analyseSchema(named)
    if (refused) return "refused"
    return enforced ? instance.compile("schema", JSON.stringify(enforced)) : "unsatisfiable"
  } catch (cause) {
    if (cause instanceof GrammarFailed && /Unsatisfiable/.test(cause.message))
      return "unsatisfiable"
    return "refused"
  }
}

const measureCase = (
  count: SuiteCount,
  { name, draft }: { readonly name: string; readonly draft: string },
  { description, schema, tests }: Case,
): void => {
  count.schemas++
  const matcher = compiled(draft, schema)
  if (matcher === "refused") {
    count.refused++
    return
  }
  if (matcher === "unsatisfiable") count.unsatisfiable++
  else count.kept++
  for (const { description: what, data, valid } of tests) {
    count.documents++
    const accepted =
      matcher !== "unsatisfiable" &&
      orders(data).some((order) => accepts(matcher, JSON.stringify(order)))
    const title = `${draft}/${name}: ${description}: ${what}: ${JSON.stringify(data)}`
    if (accepted === valid) count.passing++
    else if (accepted) count.wronglyAccepted.push(title)
    else count.wronglyRejected.push(title)
  }
  if (matcher !== "unsatisfiable") instance.free(matcher)
}

export const measureSuite = (folder: string, isWanted: (file: string) => boolean): SuiteCount => {
  const count: SuiteCount = {
    schemas: 0,
    kept: 0,
    refused: 0,
    unsatisfiable: 0,
    documents: 0,
    passing: 0,
    wronglyAccepted: [],
    wronglyRejected: [],
  }
  for (const { name, json } of jsonIn(folder).filter(({ name }: Named) => isWanted(name))) {
    const [draft, ...file] = name.split("/") as [string, ...string[]]
    for (const one of json as readonly Case[])
      measureCase(count, { name: file.join("/"), draft }, one)
  }
  return count
}
