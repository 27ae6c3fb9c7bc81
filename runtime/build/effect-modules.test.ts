import { Effect, Schema, SchemaAST, Semaphore, Stream } from "effect"
import { expect, test } from "vitest"
import { withModules } from "./effect-modules.ts"

const modules = { Effect, Schema, SchemaAST, Semaphore, Stream }

test("imports each module by itself, in as many lines", () => {
  expect(withModules('const a = 1;\nimport { Effect, Schema } from "effect";\nEffect.void\n')).toBe(
    'const a = 1;\nimport * as Effect from "effect/Effect"; import * as Schema from "effect/Schema";\nEffect.void\n',
  )
  expect(withModules('import {\n  Exit,\n  Scope,\n} from "effect";\nmore')).toBe(
    'import * as Exit from "effect/Exit"; import * as Scope from "effect/Scope";\n\n\n\nmore',
  )
})

test("leaves other packages and texts alone", () => {
  const text =
    'import { Effect } from "effect/Effect";\nconst x = `import { Effect } from "effect"`;\n'
  expect(withModules(text)).toBe(text)
})

test("the package exports its modules under their own names", async () => {
  for (const name of ["Effect", "Schema", "Stream", "SchemaAST", "Semaphore"] as const)
    expect(await import(`effect/${name}`)).toBe(modules[name])
})
