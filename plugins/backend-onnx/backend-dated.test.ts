import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { cpus, tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { kernelsName } from "./onnx/kernels.ts"
import { fixtureFolder } from "./testing/fixtures.ts"
import { answer, chatRequest, context, openBackend } from "./testing/open-backend.ts"

const fixture = openBackend()
const folder = mkdtempSync(join(tmpdir(), "rakit-dated-"))
afterAll(async () => {
  await fixture.close()
  rmSync(folder, { recursive: true, force: true })
})

const noted = async (path: string, maxTokens = 1) => {
  const facts: Record<string, unknown> = {}
  const model = await fixture.open("chat", path)
  const note = (more: object) => void Object.assign(facts, more)
  await answer(model, chatRequest("Halo", { maxTokens }), context({ note } as never))
  return facts
}

test("the evidence names the day where the template writes it into the prompt", async () => {
  const plain = fixtureFolder("smollm3")
  cpSync(plain, folder, { recursive: true })
  const template = readFileSync(join(plain, "chat_template.jinja"), "utf8")
  writeFileSync(join(folder, "chat_template.jinja"), `{{ strftime_now("%d %B %Y") }}${template}`)
  expect((await noted(folder)).date).toMatch(/^\d{4}-\d\d-\d\d$/)
  expect(await noted(plain)).not.toHaveProperty("date")
})

test("the evidence names the processor and the kernels that it runs", async () => {
  const { cpu } = await noted(fixtureFolder("smollm3"))
  expect(cpu).toBe(`${cpus()[0]?.model ?? "unknown"}, ${kernelsName() ?? "onnxruntime"}`)
})

test("the evidence has the tokens that an answer may have, within the window", async () => {
  const path = fixtureFolder("smollm3")
  expect(await noted(path, 3)).toMatchObject({ max_tokens: 3 })
  const within = (await noted(path, 1_000_000)).max_tokens as number
  expect(within).toBeGreaterThan(3)
  expect(within).toBeLessThan(1_000_000)
})
