import OpenAI from "openai"
import { afterEach, expect, it } from "vitest"
import { type ManyServers, startMany } from "../many-servers.ts"
import { missing } from "../proxies.ts"

let many: ManyServers | undefined
afterEach(() => many?.close())
const reason = missing("nginx")

it.skipIf(reason)(
  `three servers behind nginx are restarted in turn, and no call fails ${reason ?? ""}`,
  async () => {
    many = await startMany({
      roles: ["all", "api", "api"],
      env: { RAKIT_DRAIN_DELAY_MS: "500" },
    })
    const { url, apiKey, restart } = many
    // without retries: what fails once has failed
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 })
    const messages = [{ role: "user" as const, content: "one two three four five six seven eight" }]
    const failures: string[] = []
    let answered = 0
    let isOver = false
    const whole = async () => {
      const { choices } = await client.chat.completions.create({ model: "svc-lyt", messages })
      expect(choices[0]!.finish_reason).toBe("stop")
    }
    // tokens of svc-omni take 20 ms each, so that a restart finds streams that are open
    const streamed = async () => {
      const stream = await client.chat.completions.create({
        ...{ model: "svc-omni", messages, stream: true as const },
      })
      let end: string | null | undefined
      for await (const { choices } of stream) end = choices[0]?.finish_reason ?? end
      expect(end).toBe("stop")
    }
    const loop = async (call: () => Promise<void>) => {
      while (!isOver)
        await call().then(
          () => answered++,
          (error) => failures.push(String(error)),
        )
    }
    const loops = Array.from({ length: 8 }, (_, n) => loop(n % 2 === 0 ? whole : streamed))
    try {
      for (const index of [0, 1, 2]) {
        const before = answered
        await restart(index, "SIGTERM")
        expect(answered).toBeGreaterThan(before)
      }
    } finally {
      isOver = true
      await Promise.all(loops)
    }
    expect(failures, many.proxy.log()).toEqual([])
    expect(many.proxy.log()).not.toMatch(/no live upstreams/)
  },
  120_000,
)
