import { once } from "node:events"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { cliCommand, runCli } from "../../../testing/platform.ts"

const config = join(import.meta.dirname, "../../../config/test.yaml")
const starter = join(import.meta.dirname, "../../../config/starter.yaml")

let folder: string
let input: string
let env: Record<string, string>
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rakit-batch-"))
  input = join(folder, "requests.jsonl")
  env = { RAKIT_DATA: join(folder, "data") }
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)
const request = (n: number, url: string, body: object) =>
  JSON.stringify({ custom_id: `line-${n}`, method: "POST", url, body })
const embed = (n: number, more: object = {}) =>
  request(n, "/v1/embeddings", { model: "svc-embed", input: `text ${n}`, dimensions: 4, ...more })
/** Each takes about 100 ms. */
const chat = (n: number) =>
  request(n, "/v1/chat/completions", {
    model: "svc-omni",
    messages: [{ role: "user", content: `a b c ${n}` }],
  })
const write = (lines: readonly string[]) => writeFileSync(input, lines.join("\n"))

interface Result {
  readonly custom_id: string
  readonly response: {
    readonly status_code: number
    readonly body: {
      readonly choices?: readonly { readonly message: { readonly content: string } }[]
    }
  } | null
  readonly error: { readonly code: string; readonly param: string | null } | null
}
const textOf = (name: string) =>
  existsSync(join(folder, name)) ? readFileSync(join(folder, name), "utf8") : ""
const wholeLines = (name: string) => textOf(name).split("\n").slice(0, -1)
const results = (name: string) => wholeLines(name).map((line) => JSON.parse(line) as Result)

const run = (...args: string[]) => runCli(["batch", "run", input, config, ...args], env)

/**
 * Starts a run, and sends it a signal once its output has so many lines. Returns its end;
 * undefined: it was complete before.
 */
const endAfter = async (lines: number, signal: NodeJS.Signals, ...args: string[]) => {
  const child = cliCommand(["batch", "run", input, config, "--concurrency", "4", ...args], env)
  let stderr = ""
  child.stderr?.setEncoding("utf8").on("data", (piece: string) => {
    stderr += piece
  })
  const ended = once(child, "close") as Promise<[number | null, string | null]>
  while (wholeLines("requests.output.jsonl").length < lines && child.exitCode === null)
    await delay(20)
  child.kill(signal)
  const [code, by] = await ended
  return { code, by, stderr }
}

describe("rakit batch run", () => {
  it("answers every line in order, failures beside them, with neither server nor database", async () => {
    write(numbers(200).map((n) => embed(n, n % 50 === 7 ? { truncate: "MAYBE" } : {})))
    const { code, stdout, stderr } = await run("--json")
    expect(stderr).toMatch(
      /^0 \/ 200 lines {2}Rp 0\n(.* lines\/s .*\n)*200 \/ 200 lines {2}4 failed .*\n$/,
    )
    expect([code, JSON.parse(stdout)]).toMatchObject([
      1,
      {
        object: "batch_run",
        lines: 200,
        completed: 196,
        failed: 4,
        earlier: 0,
        input_tokens: 392,
        cost_idr: 0.294,
      },
    ])
    expect(results("requests.output.jsonl").map((one) => one.custom_id)).toEqual(
      numbers(200)
        .filter((n) => n % 50 !== 7)
        .map((n) => `line-${n}`),
    )
    expect(results("requests.errors.jsonl")).toMatchObject(
      [7, 57, 107, 157].map((n) => ({
        custom_id: `line-${n}`,
        response: null,
        error: { code: "invalid_request_error", param: "truncate" },
      })),
    )
    expect(readdirSync(join(folder, "data"))).toEqual([])
  }, 120_000)

  it("exits with 0 when all is well, and does not overwrite what is there", async () => {
    write([embed(1), "", embed(2)])
    expect(await run()).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^2 lines: 2 completed, 0 failed\n/),
    })
    expect(existsSync(join(folder, "requests.errors.jsonl"))).toBe(false)
    expect(await run()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("is there already. Go on with it (--resume)"),
    })
  }, 120_000)

  it("refuses a file before anything runs, line by line, and a model that was not pulled", async () => {
    write([embed(1), "{", embed(1)])
    const refusedRun = await run()
    expect(refusedRun).toMatchObject({ code: 1, stdout: "" })
    expect(refusedRun.stderr).toMatch(
      /2 lines can't run, so none was run\.\n {2}line 2: The line is not valid JSON: it ends too early\.\n {2}line 3: custom_id: lines 1 and 3 have the same one\n$/,
    )
    write([embed(1)])
    const { code, stderr } = await runCli(["batch", "run", input, starter], {
      ...env,
      RAKIT_MODELS: join(folder, "no-models"),
    })
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(
        "The files of svc-embed are not on this machine. Fix: rakit models pull svc-embed",
      ),
    ])
    expect(existsSync(join(folder, "requests.output.jsonl"))).toBe(false)
  }, 120_000)

  it("SIGINT ends it with 130 and the command that goes on; that one does the rest", async () => {
    write(numbers(150).map(chat))
    const { code, stderr } = await endAfter(20, "SIGINT")
    expect(code).toBe(130)
    expect(stderr).toMatch(
      /Interrupted after \d+ of 150 lines\. Go on with: rakit batch run \S+requests\.jsonl \S+test\.yaml --concurrency 4 --resume\n$/,
    )
    const before = wholeLines("requests.output.jsonl")
    expect(await run("--resume", "--json")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`"completed":150,"failed":0,"earlier":${before.length},`),
    })
    expect(wholeLines("requests.output.jsonl").slice(0, before.length)).toEqual(before)
    expect(
      results("requests.output.jsonl").map(
        (one) => one.response?.body.choices?.[0]?.message.content,
      ),
    ).toEqual(numbers(150).map((n) => `a b c ${n}`))
  }, 180_000)

  it("kill -9, again and again, leaves every line once and in order", async () => {
    write(
      numbers(200).map((n) =>
        n % 20 === 3
          ? request(n, "/v1/chat/completions", { model: "svc-omni", messages: [] })
          : chat(n),
      ),
    )
    for (const lines of [1, 31, 47, 90, 130])
      expect(await endAfter(lines, "SIGKILL", "--resume")).toMatchObject({ by: "SIGKILL" })
    expect(await run("--resume", "--json")).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('"completed":190,"failed":10,'),
    })
    const failed = numbers(200).filter((n) => n % 20 === 3)
    expect(results("requests.output.jsonl").map((one) => one.custom_id)).toEqual(
      numbers(200)
        .filter((n) => !failed.includes(n))
        .map((n) => `line-${n}`),
    )
    expect(results("requests.errors.jsonl").map((one) => one.custom_id)).toEqual(
      failed.map((n) => `line-${n}`),
    )
  }, 300_000)
})
