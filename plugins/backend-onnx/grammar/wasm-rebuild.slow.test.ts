import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"
import { GrammarInstance } from "./grammar-instance.ts"
import { byteVocabulary, isAllowed } from "./grammar-vocabulary.ts"
import { analyseSchema } from "./schema-report.ts"
import { keptSchemas } from "./testing/schemas.ts"
import { randomFrom } from "./testing/walk.ts"
import { webAssembly } from "./web-assembly.ts"

const folder = fileURLToPath(new URL("wasm/", import.meta.url))
const digestOf = (file: string) => createHash("sha256").update(readFileSync(file)).digest("hex")

test("the committed module is the one whose digest is committed", () => {
  expect(readFileSync(join(folder, "grammar.wasm.sha256"), "utf8").split(" ")[0]).toBe(
    digestOf(join(folder, "grammar.wasm")),
  )
})

/** Why the module can't be built here; undefined: it can. */
const rebuilt = (): { readonly file: string; readonly remove: () => void } | string => {
  if (spawnSync("cargo", ["--version"]).status !== 0) return "there is no cargo"
  const out = mkdtempSync(join(tmpdir(), "rakit-grammar-"))
  const remove = () => rmSync(out, { recursive: true, force: true })
  const built = spawnSync(join(folder, "rebuild.sh"), [out], { encoding: "utf8" })
  if (built.status === 0) return { file: join(out, "grammar.wasm"), remove }
  remove()
  if (/could not compile|error\[E/.test(built.stderr)) throw new Error(built.stderr.slice(-2_000))
  return `the target or the crates can't be had: ${built.stderr.slice(-300)}`
}

test("a module that is built here from the committed sources gives the same masks", {
  timeout: 1_200_000,
}, (context) => {
  const built = rebuilt()
  if (typeof built === "string") return context.skip(built)
  try {
    const vocabulary = byteVocabulary()
    const committed = new GrammarInstance(vocabulary)
    const fresh = new GrammarInstance(
      vocabulary,
      new webAssembly.Module(new Uint8Array(readFileSync(built.file))),
    )
    let masks = 0
    for (const [i, schema] of keptSchemas.entries()) {
      const text = JSON.stringify(analyseSchema(schema).enforced)
      const [a, b] = [committed.compile("schema", text), fresh.compile("schema", text)]
      const random = randomFrom(i)
      for (let step = 0; step < 60; step++) {
        const mask = committed.mask(a).slice()
        expect(fresh.mask(b)).toEqual(mask)
        masks++
        const allowed = Array.from({ length: 256 }, (_, byte) => byte).filter((byte) =>
          isAllowed(mask, byte),
        )
        if (allowed.length === 0) break
        const byte = allowed[Math.floor(random() * allowed.length)]!
        expect([committed.consume(a, byte), fresh.consume(b, byte)]).toEqual([true, true])
      }
    }
    expect(masks).toBeGreaterThan(1_000)
  } finally {
    built.remove()
  }
})
