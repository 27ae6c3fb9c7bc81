import { alternate, medianOf, ratioOf } from "../measure/rounds.ts"
import { figure, times } from "../measure/table.ts"
import type { EngineProcess } from "./engine-process.ts"
import type { Table } from "./report.ts"

const text = { type: "string" }

const member = {
  type: "object",
  properties: {
    id: { type: "integer" },
    name: text,
    email: text,
    role: { enum: ["developer", "designer", "tester"] },
    tags: { type: "array", items: text, maxItems: 4 },
    isActive: { type: "boolean" },
  },
  required: ["id", "name", "email", "role", "tags", "isActive"],
  additionalProperties: false,
}

/** A document longer than the measured tokens, so that none ends early. */
export const schemas = [
  {
    name: "records with names, numbers and choices",
    schema: { type: "array", items: member, minItems: 40 },
  },
  { name: "any JSON", schema: { type: "array", minItems: 200 } },
]

/** Streams constrained by a schema against as many unconstrained ones, in the same engine. */
export const measureSchemas = async (
  engine: EngineProcess,
  prompts: readonly (readonly number[])[],
  rounds: number,
  tokens: number,
): Promise<Table> => {
  const rows = []
  for (const { name, schema } of schemas) {
    const sides = [
      { name: "schema", task: { prompts, tokens, temperature: 1, schema } },
      { name: "free", task: { prompts, tokens, temperature: 1 } },
    ]
    // the grammar is compiled and the buffers have their sizes
    for (const { task } of sides) await engine.run(task)
    const results = await alternate(sides, rounds, ({ task }) => engine.run(task))
    for (const [what, of] of [
      ["while all write", "writtenPerSecond"],
      ["reading the prompt included", "tokensPerSecond"],
    ] as const) {
      const perSecond = (side: string) => figure(medianOf(results, side, (timing) => timing[of]))
      rows.push([
        `${name}, ${what}`,
        perSecond("schema"),
        perSecond("free"),
        times(ratioOf(results, "schema", "free", (timing) => timing[of])),
      ])
    }
  }
  return {
    title: `Tokens a second of ${prompts.length} streams with a schema and without, temperature 1`,
    head: ["", "schema", "free", "ratio"],
    rows,
  }
}
