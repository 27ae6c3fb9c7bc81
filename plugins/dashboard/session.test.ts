import { describe, expect, it } from "vitest"
import { webModule } from "./testing/web-module.ts"

const { makeSession } = await webModule("session.js")
const { makePersisted } = await webModule("store.js")

const open = (kept = new Map<string, string>()) => {
  const time = { ms: 1_000_000 }
  const timers: { at: number; work: () => void }[] = []
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  }
  const after = (ms: number, work: () => void) => {
    const timer = { at: time.ms + ms, work }
    timers.push(timer)
    return () => void (timers.includes(timer) && timers.splice(timers.indexOf(timer), 1))
  }
  const advance = (ms: number) => {
    time.ms += ms
    for (const timer of timers.filter(({ at }) => at <= time.ms)) timer.work()
  }
  const session = makeSession({
    persisted: makePersisted(() => storage, "s"),
    nowMs: () => time.ms,
    after,
  })
  return { session, kept, advance, timers, storage }
}
const login = { token: "jwt", expires_at: 1_000 + 86_400 }

describe("the session", () => {
  it("lasts its 24 hours, also over a reload", () => {
    const { session, kept, advance } = open()
    expect(session.get()).toEqual({})
    session.begin(login)
    expect(open(kept).session.get().token).toBe("jwt")
    advance(86_399_999)
    expect(session.get().token).toBe("jwt")
    advance(1)
    expect(session.get()).toEqual({ reason: "expired" })
    expect(kept.size).toBe(0)
  })

  it("that ran out while the page was closed says so", () => {
    const { session } = open(
      new Map([["s", JSON.stringify({ token: "jwt", expiresAtMs: 999_999 })]]),
    )
    expect(session.get()).toEqual({ reason: "expired" })
  })

  it("ends once, and a new one is not ended by the old one's timer", () => {
    const { session, advance, timers } = open()
    session.begin(login)
    session.end("left")
    expect([session.get(), timers.length]).toEqual([{ reason: "left" }, 0])
    session.begin({ ...login, expires_at: login.expires_at + 1000 })
    advance(86_400_000)
    expect(session.get().token).toBe("jwt")
  })

  it("of an administrator is kept while another account is seen, over a reload, too", () => {
    const { session, kept } = open()
    session.begin({ ...login, account: { id: "root" } })
    const own = session.get()
    session.see({
      ...{ token: "view", expires_at: 2_800, api_key: "svc_live_view" },
      account: { id: "ada" },
    })
    const seen = { token: "view", accountId: "ada", key: "svc_live_view", own }
    expect(open(kept).session.get()).toMatchObject(seen)
    session.end("back")
    expect(session.get()).toEqual({ ...own, ended: "back" })
    expect(open(kept).session.get()).toEqual(own)
  })

  it.each([
    ["is over", 2_800, undefined, { token: "jwt", ended: "expired" }],
    ["was refused", 2_800, "refused", { token: "jwt", ended: "refused" }],
    ["lasted as long as the own one", login.expires_at, undefined, { reason: "expired" }],
  ])("comes back when what is seen %s", (_, expires_at, refused, after) => {
    const { session, advance, kept } = open()
    session.begin(login)
    session.see({ token: "view", expires_at, account: { id: "ada" }, api_key: "k" })
    if (refused) session.end(refused)
    else advance((expires_at - 1_000) * 1000)
    expect(session.get()).toMatchObject(after)
    expect([...kept.values()].join()).not.toContain("view")
    advance(login.expires_at * 1000)
    expect(session.get()).toEqual({ reason: "expired" })
  })

  it("that ended while another account was seen, and the page closed, says so", () => {
    const own = { token: "jwt", expiresAtMs: 1_000_001 }
    const state = { token: "view", expiresAtMs: 999_999, own }
    const of = (value: object) => open(new Map([["s", JSON.stringify(value)]])).session.get()
    expect(of(state)).toEqual(own)
    expect(of({ ...state, own: { ...own, expiresAtMs: 5 } })).toEqual({ reason: "expired" })
  })

  it("follows what another tab does", () => {
    const { session, kept } = open()
    const seen: unknown[] = []
    session.subscribe((state: unknown) => seen.push(state))
    kept.set("s", JSON.stringify({ token: "other", expiresAtMs: 2_000_000 }))
    session.reread()
    session.reread()
    kept.delete("s")
    session.reread()
    expect(seen).toEqual([{ token: "other", expiresAtMs: 2_000_000 }, { reason: "elsewhere" }])
  })

  it.each(["null", "1", "{", '{"token":5}', '"x"'])("is none when the storage holds %s", (text) => {
    expect(open(new Map([["s", text]])).session.get()).toEqual({})
  })

  it("works where storage is forbidden", () => {
    const session = makeSession({
      persisted: makePersisted(() => {
        throw new Error("SecurityError")
      }, "s"),
      nowMs: () => 0,
      after: () => () => {},
    })
    session.begin(login)
    expect(session.get().token).toBe("jwt")
  })
})
