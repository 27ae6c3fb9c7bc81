import type { Json } from "../../core/json.ts"
import { byteVocabulary } from "../../plugins/backend-onnx/grammar/grammar-vocabulary.ts"
import { Answers, compiled, isGuarded } from "./masks.ts"
import { jsonIn } from "./sources.ts"

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
  guarded: number
  unsatisfiable: number
  documents: number
  passing: number
  refused: string[]
  wronglyAccepted: string[]
  wronglyRejected: string[]
}

const dialects: Readonly<Record<string, string>> = {
  draft4: "http://json-schema.org/draft-04/schema#",
  draft6: "http://json-schema.org/draft-06/schema#",
  draft7: "http://json-schema.org/draft-07/schema#",
  "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
  "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}

const mostPermuted = 4

/** The document with the properties of all its objects in any order. */
const orders = (data: Json): readonly Json[] => {
  if (typeof data !== "object" || data === null) return [data]
  if (Array.isArray(data))
    return data.reduce<readonly Json[][]>(
      (found, item) => found.flatMap((items) => orders(item).map((one) => [...items, one])),
      [[]],
    )
  const object = data as Record<string, Json>
  const names = Object.keys(object)
  const permutations = (rest: readonly string[]): readonly (readonly string[])[] =>
    rest.length === 0 || names.length > mostPermuted
      ? [rest]
      : rest.flatMap((name) =>
          permutations(rest.filter((other) => other !== name)).map((tail) => [name, ...tail]),
        )
  return permutations(names).flatMap((order) =>
    order
      .reduce<readonly [string, Json][][]>(
        (found, name) =>
          found.flatMap((parts) =>
            orders(object[name]).map((one): [string, Json][] => [...parts, [name, one]]),
          ),
        [[]],
      )
      .map((parts) => Object.fromEntries(parts) as Json),
  )
}

const answers = new Answers(byteVocabulary())

const measureCase = (
  count: SuiteCount,
  file: string,
  { description, schema, tests }: Case,
  draft: string,
): void => {
  count.schemas++
  const named =
    typeof schema === "object" && schema !== null && !("$schema" in schema)
      ? { $schema: dialects[draft], ...schema }
      : schema
  const result = compiled(named)
  const title = `${file}: ${description}`
  const isImpossible = result.result === "refused" && result.keyword === ""
  if (result.result !== "ok" && !isImpossible) {
    const keyword = result.result === "refused" ? `${result.keyword}: ` : ""
    count.refused.push(`${title}: ${keyword}${result.reason}`)
    return
  }
  if (isImpossible) count.unsatisfiable++
  else count.kept++
  if (!isImpossible && isGuarded(named)) count.guarded++
  const accepts = (document: Json): boolean => {
    if (result.result !== "ok") return false
    answers.open(result.grammar)
    const accepted = answers.accepts(Buffer.from(JSON.stringify(document)))
    answers.close()
    return accepted
  }
  for (const { description: what, data, valid } of tests) {
    count.documents++
    const accepted = orders(data).slice(0, 1_000).some(accepts)
    const found = `${title}: ${what}: ${JSON.stringify(data)}`
    if (accepted === valid) count.passing++
    else if (accepted) count.wronglyAccepted.push(found)
    else count.wronglyRejected.push(found)
  }
}

/** The suite's drafts and files that are wanted, each document in any order of its properties. */
export const measureSuite = (folder: string, isWanted: (file: string) => boolean): SuiteCount => {
  const count: SuiteCount = {
    ...{ schemas: 0, kept: 0, guarded: 0, unsatisfiable: 0, documents: 0, passing: 0 },
    ...{ refused: [], wronglyAccepted: [], wronglyRejected: [] },
  }
  for (const { name, json } of jsonIn(folder).filter(({ name }) => isWanted(name)))
    for (const one of json as readonly Case[]) measureCase(count, name, one, name.split("/", 1)[0]!)
  return count
}
