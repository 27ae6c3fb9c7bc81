import { execFile } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { type AddressInfo, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { plainImage } from "../../testing/images.ts"
import { type Platform, startPlatform } from "../../testing/platform.ts"

const freePort = async () => {
  const server = createServer().listen(0)
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  await once(server.close(), "close")
  return String(port)
}

let platform: Platform
let receiverPort: string
beforeAll(async () => {
  receiverPort = await freePort()
  platform = await startPlatform({
    env: {
      RAKIT_TEST_BATCH_POLL_MS: "100",
      RAKIT_WEBHOOK_ALLOW_HOSTS: `localhost:${receiverPort}`,
    },
  })
})
afterAll(() => platform.close())

const run = async (script: string, ...args: string[]) => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(import.meta.dirname, script), ...args],
    { env: { ...platform.env, RAKIT_BASE_URL: `${platform.url}/v1` } },
  )
  return stdout
}

it("chat.js streams an answer and says what it cost", async () => {
  expect(await run("chat.js", "one two three")).toBe("one two three\n(4 + 3 tokens, Rp0.024)\n")
})

it("tools.js lets the model call a function and reads the answer to its result", async () => {
  const result = '{"city":"sample","degrees":31,"sky":"sunny"}'
  expect(await run("tools.js")).toBe(`get_weather({"city":"sample"}) -> ${result}\n${result}\n`)
})

it("structured.js reads an answer that fits its schema", async () => {
  expect(await run("structured.js")).toBe(
    "accepted: not known here\n{ name: 'sample', age: 1, city: 'sample' }\n",
  )
})

it("embeddings.js compares sentences", async () => {
  expect(await run("embeddings.js")).toMatch(
    /^-?\d\.\d{3} I forgot my login secret\n-?\d\.\d{3} The weather .*\n\(\d+ tokens, 1024 numbers each\)\n$/,
  )
})

it("vision.js asks about pictures in files", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-seen-"))
  for (const type of ["png", "jpeg"] as const)
    writeFileSync(
      join(folder, `a.${type.replace("e", "")}`),
      await plainImage(8, 8, "red").toFormat(type).toBuffer(),
    )
  const answer = await run("vision.js", "what?", join(folder, "a.png"), join(folder, "a.jpg"))
  rmSync(folder, { recursive: true })
  expect(answer).toMatch(
    /^ \[image\/png\] \[image\/jpeg\]what\?\n\(\d+ tokens, 0 of them of images, Rp[\d.]+\)\n$/,
  )
})

it("images.js lists pictures by how near they are to a text", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-pictures-"))
  const colours = ["red", "blue", "green", "black", "white", "yellow", "purple", "orange", "pink"]
  const files = await Promise.all(
    colours.map(async (colour) => {
      const file = join(folder, `${colour}.png`)
      writeFileSync(file, await plainImage(8, 8, colour).png().toBuffer())
      return file
    }),
  )
  const lines = (await run("images.js", "a red square", ...files)).trim().split("\n")
  rmSync(folder, { recursive: true })
  const found = lines.slice(0, -1).map((line) => /^-?\d\.\d{3} .*\/(\w+)\.png$/.exec(line)?.[1])
  expect(found.sort()).toEqual(colours.sort())
  expect(lines.at(-1)).toMatch(/^\(9 images, Rp225\.\d+\)$/)
})

it("transcribe.js says what is heard as it comes, or writes captions", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-clients-"))
  const file = join(folder, "speech.wav")
  // two seconds of silence: 8,000 samples a second, of 8 bits
  const head = Buffer.from("524946460000000057415645666d742010000000", "hex")
  const format = Buffer.from("01000100401f0000401f00000100080064617461803e0000", "hex")
  writeFileSync(file, Buffer.concat([head, format, Buffer.alloc(16_000, 128)]))
  expect(await run("transcribe.js", file)).toBe("Halo dunia.\n(2 s, Rp3)\n")
  expect(await run("transcribe.js", file, "srt")).toMatch(/^1\n00:00:00,000 --> .*\nHalo\n\n2\n/)
  rmSync(folder, { recursive: true })
})

it("rerank.js lists the best document first, and gets objects back", async () => {
  const lines = (await run("rerank.js")).trim().split("\n")
  expect(lines).toHaveLength(4)
  expect(lines[0]).toContain("Jakarta")
  expect(lines[3]).toMatch(/^{"text":"Jakarta.*"page":"0"}$/)
})

it("batches.js asks what it would cost, and waits for the answers", async () => {
  const lines = (await run("batches.js")).trim().split("\n")
  expect(lines[0]).toMatch(/^3 lines, 0 of them wrong, at most Rp\d/)
  expect(lines[1]).toMatch(/^completed: 3 of 3, Rp\d/)
  expect(lines.slice(2).map((line) => line.split(":")[0])).toEqual([
    "question-0",
    "question-1",
    "question-2",
  ])
})

it("webhooks.js is called when its batch is done, and checks the signature", async () => {
  const lines = (await run("webhooks.js", receiverPort)).trim().split("\n")
  expect(lines[0]).toMatch(/^batch-\w+ is validating/)
  expect(lines[1]).toBe(`batch.completed: ${lines[0]?.split(" ")[0]}, completed`)
})

describe("verify-receipt.js", () => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-receipt-"))
  afterAll(() => rmSync(folder, { recursive: true }))
  const save = (name: string, json: unknown) => {
    writeFileSync(join(folder, name), JSON.stringify(json))
    return join(folder, name)
  }
  const ask = async (path: string, body?: object) => {
    const headers = {
      authorization: `Bearer ${platform.credentials.api_key}`,
      "content-type": "application/json",
    }
    return fetch(platform.url + path, {
      headers,
      ...(body && { method: "POST", body: JSON.stringify(body) }),
    })
  }

  it("verifies a receipt with the published keys and does its sum again, from the server or from files alone", async () => {
    const callId =
      (
        await ask("/v1/chat/completions", {
          model: "svc-lyt",
          messages: [{ role: "user", content: "one two three" }],
        })
      ).headers.get("x-call-id") ?? ""
    expect(await run("verify-receipt.js", callId)).toBe(
      `${platform.url} signed that ${callId} (svc-lyt) cost Rp0.024; the sum is right\n`,
    )
    const receipt = (await (await ask(`/v1/receipts/${callId}`)).json()) as { jws: string }
    const keys = (await (await ask("/.well-known/jwks.json")).json()) as { keys: object[] }
    const offline = (jws: string, of: object = keys) =>
      run("verify-receipt.js", save("receipt.json", { jws }), save("jwks.json", of))
    expect(await offline(receipt.jws)).toContain("the sum is right")
    const [head, body = "", signature] = receipt.jws.split(".")
    const cheaper = Buffer.from(
      Buffer.from(body, "base64url").toString().replace('"cost_idr":"0.024"', '"cost_idr":"0.023"'),
    ).toString("base64url")
    expect(cheaper).not.toBe(body)
    await expect(offline([head, cheaper, signature].join("."))).rejects.toThrow(
      "signature verification failed",
    )
    await expect(offline(receipt.jws, { keys: [] })).rejects.toThrow("no applicable key")
  })
})
