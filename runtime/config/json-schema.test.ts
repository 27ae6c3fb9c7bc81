import { readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { configJsonSchema } from "./json-schema.ts"

const committed = () =>
  JSON.parse(
    readFileSync(new URL("../../config/rakit.schema.json", import.meta.url), "utf8"),
  ) as Record<string, unknown>

it("config/rakit.schema.json is what the schemas say (npm run schema)", async () => {
  expect(committed()).toEqual(JSON.parse(JSON.stringify(await configJsonSchema())))
})

it("every $ref resolves", () => {
  const schema = committed()
  const refs = JSON.stringify(schema).match(/"\$ref":"#\/\$defs\/[^"]+"/g) ?? []
  for (const ref of refs)
    expect(Object.keys(schema.$defs as object)).toContain(ref.slice('"$ref":"#/$defs/'.length, -1))
})
