import { mkdir, readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { openSourceLock } from "./store/source-lock.ts"
import { commitNamed, gitBlob, publish, refuse } from "./testing/fake-hub.ts"
import { noise, sha256 } from "./testing/fixture.ts"
import { large, setUpHub, source } from "./testing/hub-fixture.ts"

const { hub, cdn, lockFile, lockText, start, dropCache } = setUpHub()

const one = commitNamed("1")
const two = commitNamed("2")
const weights = noise(1_000_000)
const token = "hf_secret-of-the-operator"

describe("a source of a hub that names a branch", () => {
  it("is locked to the commit and digest that the hub announces, and stays there", async () => {
    publish(hub(), cdn(), large(one, weights, ["main"]))
    const first = start()
    expect(await first.pull()).toBe(sha256(weights))
    expect(parse(await lockText())).toEqual({
      models: { svc: [{ url: source.url, commit: one, sha256: sha256(weights) }] },
    })
    expect(first.events()).toEqual(["model.source_locked"])
    expect(first.files.locked(source)?.commit).toBe(one)

    publish(hub(), cdn(), large(two, noise(1000), ["main"]))
    const again = start()
    const seen = hub().seen.length
    expect(await again.pull()).toBe(sha256(weights))
    expect(hub().seen.length).toBe(seen)
    await dropCache()
    expect(await again.pull()).toBe(sha256(weights))
    expect(hub().seen.at(-1)?.path).toContain(one)
    expect(again.events()).toEqual([])
  })

  it("writes what the cache has of it into a lock file that is new", async () => {
    publish(hub(), cdn(), large(one, weights, ["main"]))
    await start().pull()
    await rm(lockFile())
    const seen = hub().seen.length
    await start().pull()
    expect(hub().seen.length).toBe(seen)
    expect(parse(await lockText()).models.svc).toEqual([
      { url: source.url, commit: one, sha256: sha256(weights) },
    ])
  })
})

describe("what is not what the lock file has", () => {
  const lockedAndGone = async () => {
    publish(hub(), cdn(), large(one, weights, ["main"]))
    await start().pull()
    await dropCache()
  }

  it("is refused by the hub's announcement, before anything is downloaded", async () => {
    await lockedAndGone()
    const other = noise(1000)
    publish(hub(), cdn(), large(one, other))
    const before = cdn().seen.length
    const said = await start().pull()
    expect(said).toContain(
      `the hub announces sha256 ${sha256(other)} for hf:owner/repo@${one}/model.gguf, not the pinned ${sha256(weights)}`,
    )
    expect(said).toContain(`${lockFile()} pins it (rakit models pull --update`)
    expect(cdn().seen.length).toBe(before)
  })

  it("is refused when the bytes differ, when it is gone, and when another commit answers", async () => {
    await lockedAndGone()
    publish(hub(), cdn(), { ...large(one, noise(300_000)), announced: sha256(weights) })
    expect(await start().pull()).toMatch(/model\.gguf has sha256 \w+, not the pinned .* pins it/)
    refuse(hub(), `/owner/repo/resolve/${one}/model.gguf`, 404, "RevisionNotFound")
    expect(await start().pull()).toMatch(/owner\/repo has no revision 1{40}; .* pins it/)
    publish(hub(), cdn(), large(two, weights, [one]))
    expect(await start().pull()).toMatch(/answers for the commit 2{40} when asked for .*@1{40}/)
  })

  it("is refused on the first pull, too, when the bytes are not those announced", async () => {
    publish(hub(), cdn(), { ...large(one, weights, ["main"]), announced: sha256(noise(9)) })
    expect(await start().pull()).toMatch(/has sha256 \w+, not the \w{64} that its index announced$/)
    const small = { repo: "owner/repo", path: "model.gguf", isLarge: false, revisions: ["main"] }
    const body = noise(500)
    publish(hub(), cdn(), { ...small, commit: two, body, announced: gitBlob(noise(9)) })
    expect(await start().pull()).toMatch(/is not the git blob \w{40} that its index announced/)
    expect(await lockText()).toBe("")
    publish(hub(), cdn(), { ...small, commit: two, body })
    expect(await start().pull()).toBe(sha256(body))
    expect(await lockText()).toContain(`commit: "${two}"`)
  })
})

describe("a token", () => {
  it("is sent to the hub and never to the host that it redirects to, also when a download is resumed", async () => {
    const served = { cut: (n: number) => (n === 0 ? { afterBytes: 600_000 } : undefined) }
    publish(hub(), cdn(), { ...large(one, weights, ["main"]), served })
    const { pull, log } = start({ HF_TOKEN: ` ${token}\n` })
    expect(await pull()).toBe(sha256(weights))
    expect(hub().seen.map(({ headers }) => headers.authorization)).toEqual(
      hub().seen.map(() => `Bearer ${token}`),
    )
    expect(cdn().seen.map(({ headers }) => headers.authorization)).toEqual([undefined, undefined])
    expect(cdn().seen[1]?.headers.range).toMatch(/^bytes=\d+-$/)
    expect(JSON.stringify(log.lines) + (await lockText())).not.toContain(token)
  })

  it.each([
    [
      401,
      "GatedRepo",
      {},
      /owner\/repo is gated: accept its terms at http\S+\/owner\/repo, and set HF_TOKEN/,
    ],
    [
      403,
      "GatedRepo",
      { HF_TOKEN: token },
      /the account of HF_TOKEN may not read it: accept its terms/,
    ],
    [403, undefined, { HF_TOKEN: token }, /may not read it/],
    [401, undefined, { HF_TOKEN: token }, /does not take the token in HF_TOKEN/],
    [
      401,
      "RepoNotFound",
      {},
      /has no public repository owner\/repo: correct the name, or set HF_TOKEN/,
    ],
    [404, "EntryNotFound", {}, /owner\/repo has no model\.gguf at main/],
    [404, "RevisionNotFound", {}, /owner\/repo has no revision main/],
    [404, undefined, {}, /answered 404 for hf:owner\/repo@main\/model\.gguf/],
  ])("%i %s is explained", async (status, code, env, message) => {
    refuse(hub(), "/owner/repo/resolve/main/model.gguf", status, code)
    const { pull, log } = start(env)
    const said = await pull()
    expect(said).toMatch(message)
    expect(said + JSON.stringify(log.lines)).not.toContain(token)
    expect(hub().seen.length).toBe(1)
  })

  const basic = `Basic ${Buffer.from("me:word").toString("base64")}`
  it.each<[string, Readonly<Record<string, string>>, string]>([
    ["no token", {}, basic],
    ["a token", { HF_TOKEN: token }, `Bearer ${token}`],
  ])(
    "user and password of a mirror's address are sent there alone, with %s",
    async (_, more, wanted) => {
      publish(hub(), cdn(), large(one, weights, ["main"]))
      const { pull, log } = start({ HF_ENDPOINT: hub().url.replace("//", "//me:word@"), ...more })
      expect(await pull()).toBe(sha256(weights))
      for (const { headers } of hub().seen) expect(headers.authorization).toBe(wanted)
      expect(cdn().seen.map(({ headers }) => headers.authorization)).toEqual([undefined])
      expect(JSON.stringify(log.lines) + (await lockText())).not.toContain("word")
    },
  )

  it("that no header can carry is refused without being shown", async () => {
    const { pull, log } = start({ HF_TOKEN: `${token}\n${token}` })
    const said = await pull()
    expect(said).toContain("HF_TOKEN holds characters that no token has")
    expect(said + JSON.stringify(log.lines)).not.toContain(token)
  })
})

it("a folder is locked to the commit of its branch, with the digest of all its files", async () => {
  const config = Buffer.from("{}")
  const folder = { repo: "owner/repo", revisions: [], commit: one }
  publish(hub(), cdn(), { ...folder, path: "m/model.bin", body: weights, isLarge: true })
  publish(hub(), cdn(), { ...folder, path: "m/config.json", body: config, isLarge: false })
  hub().json("/api/models/owner/repo/revision/main", { sha: one })
  hub().json(`/api/models/owner/repo/tree/${one}/m?recursive=true`, [
    { type: "file", path: "m/model.bin", oid: two, lfs: { oid: sha256(weights) } },
    { type: "file", path: "m/config.json", oid: gitBlob(config) },
  ])
  const tree = { url: "hf:owner/repo@main/m/" }
  const { files } = start()
  const path = await Effect.runPromise(files.pull("svc", [tree], () => {}))
  expect(await readFile(join(path, "config.json"), "utf8")).toBe("{}")
  expect(files.locked(tree)).toMatchObject({ commit: one })
  await dropCache()
  const asked = hub().seen.length
  await Effect.runPromise(start().files.pull("svc", [tree], () => {}))
  expect(
    hub()
      .seen.slice(asked)
      .map((request) => request.path)
      .join(" "),
  ).not.toContain("main")
})

it("a hub that knows no HEAD is asked by GET", async () => {
  publish(hub(), cdn(), large(one, weights))
  hub().handle("/owner/repo/resolve/main/model.gguf", (request, response) =>
    request.method === "HEAD"
      ? response.writeHead(405).end()
      : response
          .writeHead(302, {
            location: `${cdn().url}/blobs/${one}/model.gguf`,
            "x-repo-commit": one,
            "x-linked-etag": `"${sha256(weights)}"`,
          })
          .end(),
  )
  expect(await start().pull()).toBe(sha256(weights))
  expect(await lockText()).toContain(one)
})

it("other sources are locked by their digest; those with a secret in the URL or a digest are not", async () => {
  hub().file("/m.bin", { body: weights })
  hub().file("/m.bin?signature=secret", { body: weights })
  const { pull, events } = start()
  await pull({ url: `${hub().url}/m.bin` })
  expect(parse(await lockText())).toEqual({
    models: { svc: [{ url: `${hub().url}/m.bin`, sha256: sha256(weights) }] },
  })
  await pull({ url: `${hub().url}/m.bin?signature=secret` })
  expect(await lockText()).not.toContain("secret")
  expect(events()).toEqual(["model.source_locked", "model.source_unpinned"])
  await dropCache()
  hub().file("/m.bin", { body: noise(10) })
  expect(await start().pull({ url: `${hub().url}/m.bin` })).toMatch(/not the pinned .* pins it/)
})

it("a folder that can't be written costs a warning, and a wrong lock file is refused by name", async () => {
  publish(hub(), cdn(), large(one, weights, ["main"]))
  const { pull, events } = start()
  // a folder in its place: also root can't write it
  await mkdir(lockFile())
  expect(await pull()).toBe(sha256(weights))
  expect(events()).toEqual(["model.lock_not_written"])
  await rm(lockFile(), { recursive: true })
  await writeFile(lockFile(), "models: { svc: [{ url: x, sha256: short }] }")
  expect(() => openSourceLock(lockFile())).toThrow(/models\.lock\.yaml: this is no lock file/)
})
