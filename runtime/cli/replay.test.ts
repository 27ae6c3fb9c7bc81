import { generateKeyPairSync, sign } from "node:crypto"
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, expect, it, vi } from "vitest"
import { makeCli } from "../cli.ts"
import { compared, replay } from "./replay.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-replay-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
  process.exitCode = undefined
})

const then = { request: "r", model: "m", config: "c", version: "1", cpu: "x", answer: "a" }

it.each([
  ["the same answer", {}, 0, []],
  ["another answer", { answer: "b" }, 1, []],
  ["the same answer elsewhere", { cpu: "y", version: "2" }, 0, ["version", "cpu"]],
  ["another entry and answer", { config: "d", answer: "b" }, 1, ["config"]],
  ["another request", { request: "q", answer: "b" }, 2, ["request"]],
  ["media that a receipt of before doesn't name", { media: "p" }, 0, []],
  ["a limit of tokens that a receipt of before doesn't name", { max_tokens: 9 }, 0, []],
  ["other files of the model", { model: "n" }, 2, ["model"]],
  ["another day in the prompt", { date: "2026-01-02", answer: "b" }, 2, ["date"]],
  ["a model whose answers can't be repeated", { model: null }, 2, ["model"]],
])("%s", (_, change, code, differences) => {
  expect(compared(then, { ...then, ...change })).toMatchObject({ code, differences })
})

it("says that an answer may have fewer tokens by the server's settings", () => {
  const limited = { ...then, max_tokens: 2_048 }
  expect(compared(limited, { ...limited, max_tokens: 421, answer: "b" })).toEqual({
    code: 1,
    lines: [
      "the most tokens of an answer, by the request, or the server's settings: 2048 then, 421 now",
      "different",
    ],
    differences: ["max_tokens"],
  })
})

it("compares no answers about other images, nor about other frames of a video", () => {
  const seen = { ...then, media: "p" }
  expect(compared(seen, { ...seen, media: "q", answer: "b" })).toEqual({
    code: 2,
    lines: [
      "the images, sounds or frames of videos that the model got: p then, q now",
      "not comparable",
    ],
    differences: ["media"],
  })
})

it("says of no answer that it is another one where the receipt names no seed of then", () => {
  const drawn = { ...then, seed: 7 }
  expect(compared(then, { ...drawn, answer: "b" })).toMatchObject({
    code: 2,
    lines: ["not replayable: the receipt names no seed, and this answer was drawn by another one"],
  })
  expect(compared(then, drawn)).toMatchObject({ code: 0 })
  expect(compared(drawn, { ...drawn, answer: "b" })).toMatchObject({ code: 1 })
})

const { publicKey, privateKey } = generateKeyPairSync("ed25519")
const coded = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url")
const jws = (payload: object, typ = "receipt+jws") => {
  const signed = `${coded({ alg: "EdDSA", typ })}.${coded(payload)}`
  return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString("base64url")}`
}

/** Without a config file no deployment is opened: the receipts then name no answer. */
const replayed = async (
  receipt: unknown,
  request: unknown,
  keys?: unknown,
  json = false,
  config = "none.yaml",
) => {
  const write = (name: string, value: unknown) => {
    const file = join(folder, name)
    writeFileSync(file, typeof value === "string" ? value : JSON.stringify(value))
    return file
  }
  let said = ""
  for (const stream of [process.stdout, process.stderr])
    vi.spyOn(stream, "write").mockImplementation((text) => {
      said += text
      return true
    })
  const jwks = keys === undefined ? {} : { jwks: write("jwks.json", keys) }
  const files = [write("receipt.json", receipt), write("request.json", request)] as const
  await replay(...files, join(folder, config), { ...jwks, json })
  return [process.exitCode, said]
}

const receipt = { endpoint: "embeddings", call_id: "c" }
const jwks = { keys: [{ kty: "none" }, publicKey.export({ format: "jwk" })] }

it("says what of the signature was checked", async () => {
  const nothing = "not replayable: the receipt names no answer\n"
  expect(await replayed({ jws: jws(receipt) }, {}, jwks)).toEqual([2, nothing])
  expect(await replayed({ jws: jws(receipt) }, {})).toEqual([
    2,
    `the receipt's signature was not checked (--jwks FILE checks it)\n${nothing}`,
  ])
  expect(await replayed({ jws: jws(receipt) }, {}, { keys: [] })).toEqual([
    2,
    "the receipt is not signed by these keys\nnot comparable\n",
  ])
  expect(await replayed(receipt, {}, jwks)).toEqual([
    2,
    expect.stringMatching(/^the receipt has no signature: .*\nnot comparable\n$/),
  ])
  const [, json] = await replayed({ jws: jws(receipt) }, {}, jwks, true)
  expect(JSON.parse(String(json))).toMatchObject({ signature: "valid" })
})

it("reads a request that begins with a byte-order mark", async () => {
  expect(await replayed({ jws: jws(receipt) }, "\uFEFF{}", jwks)).toEqual([
    2,
    "not replayable: the receipt names no answer\n",
  ])
})

it.each([
  [{ answer: null }, "the receipt names no answer"],
  [{ answer: 5 }, "the receipt names no answer"],
  [{ answer: "sha256:0", seed: null }, "the receipt's seed is no number"],
  [{ answer: "sha256:0", served_by: { upstream: "a" } }, "another server computed the answer"],
  [
    { answer: "sha256:0", model: "m", served_by: { model: "svc-b" } },
    `another model answered in this one's place, {"model":"svc-b"}`,
  ],
])("of the evidence %j nothing is run again", async (evidence, why) => {
  const damaged = { jws: jws({ endpoint: "chat.completions", evidence }) }
  expect(await replayed(damaged, {}, jwks)).toEqual([2, `not replayable: ${why}\n`])
})

it("shows what a receipt has in place of digests, cut to 200 characters", () => {
  const odd = { model: 5, version: { a: 1 }, cpu: "z".repeat(500), date: "d" }
  expect(compared({ ...then, ...odd }, { ...then, cpu: "y" }).lines).toEqual([
    "the model's files, their precision or the graph: 5 then, m now",
    "the day, which the prompt names: d then, none now",
    'the server\'s version: {"a":1} then, 1 now',
    `the CPU: ${"z".repeat(200)} then, y now`,
    "not comparable",
  ])
})

it("writes control characters of receipts as their numbers", async () => {
  const [code, said] = await replayed("\u001b[31m\u202e", {})
  expect(code).toBe(2)
  expect(said).toMatch(/it can't be read as JSON \(Unexpected token '\\u\{1b\}'/)
  expect(said).not.toContain("\u001b")
  expect(said).not.toContain("\u202e")
})

it("reads no file that is too large", async () => {
  const large = join(folder, "large.json")
  writeFileSync(large, "")
  truncateSync(large, 300_000_000)
  const write = vi.spyOn(process.stderr, "write").mockReturnValue(true)
  await replay(large, large, "none.yaml", { json: false })
  expect(write.mock.calls.join("")).toBe(
    `${large}: it can't be read as JSON (it is larger than 268435456 bytes)\n`,
  )
})

it.each([
  ["a receipt that is null", null, {}, jwks, /receipt\.json: it is no JSON object/],
  ["a JWS of nothing", { jws: "a.b" }, {}, jwks, /receipt\.json: it is no receipt/],
  [
    "a JWS of four parts",
    { jws: `${jws(receipt)}.x` },
    {},
    jwks,
    /receipt\.json: it is no receipt/,
  ],
  ["a JWS of another kind", { jws: jws(receipt, "JWT") }, {}, jwks, /it is no receipt/],
  ["a request that is no JSON", receipt, "hello", undefined, /request\.json: it can't be read as/],
  ["a request that is a list", receipt, [1], undefined, /request\.json: it is no JSON object/],
  ["a file without keys", receipt, {}, { keys: 7 }, /jwks\.json: it has no keys/],
])("refuses %s by its file", async (_, given, request, keys, message) => {
  expect(await replayed(given, request, keys)).toEqual([2, expect.stringMatching(message)])
})

it("shows nothing that came from the environment, in the log neither", async () => {
  const weights = join(folder, "a-secret-place.gguf")
  writeFileSync(weights, "GGUF, but damaged")
  vi.stubEnv("WEIGHTS", weights)
  writeFileSync(
    join(folder, "damaged.yaml"),
    `name: replayed
dataDir: ${join(folder, "data")}
plugins: { billing-free: {}, identity-static: { keys: [] }, backend-onnx: {}, endpoint-chat: {} }
models:
  - { id: m, task: chat, backend: onnx, limits: { contextTokens: 9, maxOutputTokens: 5 }, capabilities: [chat], sources: [{ url: "file:\${WEIGHTS}" }] }`,
  )
  const asked = { model: "m", messages: [{ role: "user", content: "Hello" }] }
  const paid = { endpoint: "chat.completions", evidence: { answer: "sha256:0" } }
  const [code, said] = await replayed(paid, asked, undefined, false, "damaged.yaml")
  expect(code).toBe(2)
  expect(said).toContain("model.open_failed")
  expect(said).toContain("${WEIGHTS}")
  expect(said).not.toContain("a-secret-place")
})

it.each([
  [{ seed: "5" }, /^seed: expected number/],
  [{ seed: 5.5 }, /^seed: expected an integer/],
  [{ stream: "yes" }, /^stream: expected boolean/],
  [{ stream_options: {} }, /^stream_options: is only allowed when stream is true/],
  [{ audio: {} }, /^audio/],
  [{ seed: 6 }, /\nthe seed: 5 then, 6 now\nnot comparable\n$/],
  [{ model: "m:legal" }, /empty\.yaml has no 'm:legal': There is no such model here/],
])("says of %j what the API does, and runs nothing", async (more, message) => {
  writeFileSync(
    join(folder, "empty.yaml"),
    `name: replayed
dataDir: ${join(folder, "data")}
plugins: { billing-free: {}, identity-static: { keys: [] }, endpoint-chat: {} }`,
  )
  const asked = { model: "m", messages: [{ role: "user", content: "Hello" }], ...more }
  const paid = { endpoint: "chat.completions", evidence: { answer: "sha256:0", seed: 5 } }
  const [code, said] = await replayed(paid, asked, undefined, false, "empty.yaml")
  expect(code).toBe(2)
  expect(said).toMatch(message)
})

it.each([
  [["receipt.json"], 2],
  [["receipt.json", "request.json", "--jwk", "keys.json"], 2],
  [["--help"], 0],
])("does not say of %j by its exit code that an answer is another one", async (words, code) => {
  for (const stream of [process.stdout, process.stderr])
    vi.spyOn(stream, "write").mockImplementation(() => true)
  const exit = vi.spyOn(process, "exit").mockImplementation((code) => {
    throw new Error(`exit ${code}`)
  })
  await expect(makeCli().parseAsync(["replay", ...words], { from: "user" })).rejects.toThrow()
  expect(exit.mock.calls[0]).toEqual([code])
})
