import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-documents-"))
let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(async () => {
  await platform?.close()
  rmSync(folder, { recursive: true })
})

const save = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}
const ask = (...args: string[]) =>
  promisify(execFile)(process.execPath, [join(import.meta.dirname, "chat.js"), ...args], {
    env: { ...platform.env, RAKIT_BASE_URL: `${platform.url}/v1` },
  })

it("uploads a document once, and answers with quotes that stand where it says", async () => {
  const text = `Trips 🚲\n\n${"The coach leaves at nine. Lunch is at noon, in the old mill. ".repeat(40)}\n\nBring a coat: it rains.\n`
  const path = save("trips.md", text)
  const { stdout, stderr } = await ask(path, "When does the coach leave?")
  expect(stderr).toMatch(/^trips\.md: uploaded\n(.*\n)*trips\.md: processed, \d+ chunks.*\n$/)
  const quotes = [...stdout.matchAll(/^ {2}"(.*)"\n {4}trips\.md, characters (\d+) to (\d+) /gm)]
  expect(quotes).toHaveLength(2)
  for (const [, quote, start, end] of quotes)
    expect([...text].slice(Number(start), Number(end)).join("")).toBe(quote)
  const again = await ask(path, "And lunch?")
  expect(again.stderr).toMatch(/^trips\.md: processed, .*\n$/)
})

it("says why a document can't be read", async () => {
  const failed = ask(save("blank.txt", " \n \n"), "What?")
  await expect(failed).rejects.toMatchObject({
    stderr: expect.stringMatching(/^blank\.txt: [A-Z].*\.$/m),
  })
})

it("asks for questions where none is given, and names the pages of a PDF", async () => {
  const running = ask(join(import.meta.dirname, "handbook.pdf"))
  running.child.stdin?.end("How long is it covered?\n\nCan I use vinegar?\n")
  const { stdout } = await running
  expect(
    stdout.match(/^ {2}"[A-Z].*\."\n {4}handbook\.pdf, page [123], characters \d+ /gm),
  ).toHaveLength(4)
})
