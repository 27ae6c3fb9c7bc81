import { once } from "node:events"
import { request } from "node:http"
import { text } from "node:stream/consumers"
import { Effect } from "effect"
import { afterEach, expect, it } from "vitest"
import { type Caller, defaultLimits } from "../../core/caller.ts"
import { apiError } from "../../core/errors.ts"
import { echo, type HttpFixture, openHttpFixture } from "./testing/fixture.ts"

const owner: Caller = {
  tenant: { account: "acc", mode: "live" },
  scopes: [],
  role: "admin",
  limits: defaultLimits,
}

let http: HttpFixture
afterEach(() => http.close())

it.each(["session", "admin"] as const)(
  "a %s that ends while its body is on its way changes nothing",
  async (access) => {
    let isOver = false
    let asked = 0
    const sessions = () => ({
      authenticate: () => {
        asked++
        return isOver ? Effect.fail(apiError("authentication_error")) : Effect.succeed(owner)
      },
      resume: () => Effect.succeed(owner),
    })
    http = await openHttpFixture({ endpoints: [{ ...echo, aliases: [], access }], sessions })
    const send = async (end: () => Promise<void>) => {
      const headers = { authorization: "Bearer x", "content-type": "application/json" }
      const sent = request(`${http.url}${echo.path}`, { method: "POST", headers })
      const replied = once(sent, "response")
      sent.write('{"model":')
      await end()
      sent.end('"a"}')
      const [reply] = await replied
      await text(reply)
      return reply.statusCode
    }
    expect(await send(async () => {})).toBe(200)
    const before = asked
    const ended = send(async () => {
      while (asked === before) await new Promise((resolve) => setImmediate(resolve))
      isOver = true
    })
    expect(await ended).toBe(401)
  },
)
