import OpenAI from "openai"
import { afterEach, describe, expect, it } from "vitest"
import { type Platform, startPlatform } from "../platform.ts"

let platform: Platform | undefined
afterEach(() => platform?.close())

const slowStream = async ({ url, credentials }: Platform, words: number) => {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: credentials.api_key, maxRetries: 0 })
  const content = Array.from({ length: words }, (_, i) => `w${i}`).join(" ")
  return client.chat.completions.create({
    model: "svc-omni",
    messages: [{ role: "user", content }],
    stream: true,
  })
}

describe("signals", () => {
  it("SIGTERM lets an open stream end properly, and the process exits with 0", async () => {
    platform = await startPlatform()
    const stream = await slowStream(platform, 40)
    let text = ""
    let reason: string | null | undefined
    let ended: Promise<number | string> | undefined
    for await (const chunk of stream) {
      ended ??= platform.stop("SIGTERM")
      text += chunk.choices[0]?.delta.content ?? ""
      reason = chunk.choices[0]?.finish_reason ?? reason
    }
    expect(text.endsWith("w39")).toBe(true)
    expect(reason).toBe("stop")
    expect(await ended).toBe(0)
  })

  it("a second signal ends it at once", async () => {
    platform = await startPlatform({ env: { RAKIT_TEST_DRAIN_MS: "600000" } })
    const stream = await slowStream(platform, 10_000)
    const iterator = stream[Symbol.asyncIterator]()
    await iterator.next()
    platform.process.kill("SIGTERM")
    while (!platform.output().stderr.includes("finishing open requests"))
      await new Promise((resolve) => setImmediate(resolve))
    expect(await platform.stop("SIGTERM")).toBe(143)
    await expect(
      iterator.next().then(async () => {
        for (;;) if ((await iterator.next()).done) throw new Error("cut")
      }),
    ).rejects.toThrow()
  })

  it("goes on when nobody reads its lines any more", async () => {
    platform = await startPlatform()
    platform.process.stdout?.destroy()
    platform.process.stderr?.destroy()
    for (let n = 0; n < 5; n++) expect((await fetch(`${platform.url}/v1/models`)).status).toBe(200)
    expect(await platform.stop("SIGTERM")).toBe(0)
  })
})
