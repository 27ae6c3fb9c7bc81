import { Effect } from "effect"
import fc from "fast-check"
import { afterAll, beforeAll, expect, it } from "vitest"
import { runs } from "../../../testing/property.ts"
import { viewSeconds } from "../admin/impersonate.ts"
import { accountsOf } from "../testing/accounts.ts"
import { openSessionFixture, type SessionFixture } from "../testing/session-fixture.ts"

let fixture: SessionFixture
let accounts: ReturnType<typeof accountsOf>
beforeAll(async () => {
  fixture = await openSessionFixture()
  accounts = accountsOf(fixture)
})
afterAll(() => fixture?.close())

const run = Effect.runPromise
type Who = "root" | "ada"

/** A session as the model knows it; a view has the administrator's session that it began in. */
interface Known {
  readonly of: Who
  readonly token: string
  readonly untilMs: number
  readonly parent?: Known
  readonly key?: string
  isOpen: boolean
}

/** One deployment's two accounts: what is done to them, and what must follow for every token. */
const makeWorld = async () => {
  const ids = {
    root: (await accounts.signUp({ verified: true, role: "admin" })).id,
    ada: (await accounts.signUp({ verified: true })).id,
  }
  const epochs = { root: 1, ada: 1 }
  const known: Known[] = []
  let begun = 0
  let unswept = 0
  let isAdmin = true
  const nowMs = () => fixture.clock.nowMs()
  const endWhere = (which: (one: Known) => boolean) => {
    for (const one of known) if (one.isOpen && which(one)) one.isOpen = false
  }
  const own = (of: Who, n: number) => {
    const open = known.filter((one) => one.isOpen && one.of === of && !one.parent)
    return open[n % Math.max(1, open.length)]
  }
  const change = async (of: Who, changes: { session_epoch?: number; role?: "user" | "admin" }) => {
    const { database, deps } = fixture
    await run(database.transaction((tx) => deps.accounts.change(ids[of], changes, tx)))
    deps.keyChanges.announce({ account: ids[of] })
  }
  const ask = (method: "GET" | "POST" | "DELETE", path: string, token: string, body?: object) =>
    fixture.ask(method, path, body as never, { token })

  const acts = {
    begin: async (of: Who) => {
      const account = { id: ids[of], session_epoch: epochs[of] }
      const { token } = await run(fixture.deps.sessions.begin(account))
      known.push({ of, token, untilMs: nowMs() + 86_400_000, isOpen: true })
    },
    endOne: async (of: Who, n: number) => {
      const one = own(of, n)
      if (!one) return
      expect((await ask("DELETE", "/dashboard/sessions/current", one.token)).status).toBe(200)
      endWhere((other) => other === one || other.parent === one)
    },
    endAll: async (of: Who) => {
      await change(of, { session_epoch: ++epochs[of] })
      endWhere((one) => one.of === of || one.parent?.of === of)
    },
    see: async (_: Who, n: number) => {
      const one = own("root", n)
      if (!one) return
      const path = `/admin/accounts/${ids.ada}/impersonate`
      const { status, json } = await ask("POST", path, one.token, { reason: "why" })
      expect(status).toBe(isAdmin ? 200 : 403)
      if (status !== 200) return
      endWhere(({ parent }) => parent === one)
      const untilMs = nowMs() + viewSeconds * 1000
      known.push({
        of: "ada",
        token: json.token,
        key: json.api_key,
        untilMs,
        parent: one,
        isOpen: true,
      })
      begun++
    },
    leave: async (_: Who, n: number) => {
      const one = own("root", n)
      if (!one) return
      const { status } = await ask("POST", "/admin/end-impersonation", one.token)
      expect(status).toBe(isAdmin ? 200 : 403)
      if (status === 200) endWhere(({ parent }) => parent === one)
    },
    role: async () => {
      isAdmin = !isAdmin
      await change("root", { role: isAdmin ? "admin" : "user" })
      if (!isAdmin) endWhere(({ parent }) => parent !== undefined)
    },
    wait: async () => {
      fixture.clock.advance(11 * 60_000)
      for (const one of known)
        if (one.isOpen && one.untilMs <= nowMs()) {
          one.isOpen = false
          if (one.parent) unswept++
        }
    },
    sweep: async () => {
      await run(fixture.deps.sessionRows.sweep(new Date(nowMs())))
      unswept = 0
    },
  }
  const check = async () => {
    for (const { of, token, key, isOpen } of known) {
      const me = await ask("GET", "/dashboard/me", token)
      expect([me.status, isOpen ? me.json.id : ids[of]]).toEqual([isOpen ? 200 : 401, ids[of]])
      if (key) expect((await ask("GET", "/v1/files", key)).status).toBe(isOpen ? 200 : 401)
    }
    const records = (await fixture.auditOf(ids.ada)).map(({ action }) => action)
    const count = (action: string) => records.filter((one) => one === action).length
    const open = known.filter((one) => one.isOpen && one.parent).length
    expect(count("account.impersonate")).toBe(begun)
    // an expired view is recorded by the sweep, or by what would have ended it before
    const ends = count("account.impersonate_end")
    expect(ends).toBeLessThanOrEqual(begun - open)
    expect(ends).toBeGreaterThanOrEqual(begun - open - unswept)
    for (const of of ["root", "ada"] as const) {
      const one = own(of, 0)
      const listed = one ? (await ask("GET", "/dashboard/sessions", one.token)).json.data : []
      expect(listed).toHaveLength(
        known.filter((other) => other.isOpen && other.of === of && !other.parent).length,
      )
    }
  }
  return { acts, check }
}

const step = fc.record({
  act: fc.constantFrom("begin", "endOne", "endAll", "see", "see", "leave", "role", "wait", "sweep"),
  of: fc.constantFrom<Who>("root", "ada"),
  n: fc.nat(3),
})

it("whatever is done, each token is good exactly as long as its session, and each view is recorded", {
  timeout: 60_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
      const { acts, check } = await makeWorld()
      for (const of of ["root", "root", "ada"] as const) await acts.begin(of)
      for (const { act, of, n } of steps) {
        await acts[act as keyof typeof acts](of, n)
        await check()
      }
      await acts.sweep()
      await check()
    }),
    { numRuns: runs(30) },
  )
})
