import { Effect } from "effect"
import { beforeEach, expect, it } from "vitest"
import { commitNamed, gitBlob, publish, refuse } from "./testing/fake-hub.ts"
import { noise, sha256 } from "./testing/fixture.ts"
import { setUpHub } from "./testing/hub-fixture.ts"

const { hub, cdn, start } = setUpHub()
const commit = commitNamed("1")
const weights = noise(500_000)
const config = Buffer.from("{}")
const tree = { url: "hf:owner/repo@main/m/" }
const resolved = `/owner/repo/resolve/${commit}/m`

beforeEach(() => {
  const folder = { repo: "owner/repo", revisions: [], commit }
  publish(hub(), cdn(), { ...folder, path: "m/model.bin", body: weights, isLarge: true })
  publish(hub(), cdn(), { ...folder, path: "m/config.json", body: config, isLarge: false })
  hub().json("/api/models/owner/repo/revision/main", { sha: commit })
  const [size, bytes] = [config.length, weights.length]
  hub().json(`/api/models/owner/repo/tree/${commit}/m?recursive=true`, [
    { type: "file", path: "m/model.bin", size: bytes, lfs: { oid: sha256(weights) } },
    { type: "file", path: "m/config.json", size, oid: gitBlob(config) },
  ])
})

const pullTree = ({ files }: ReturnType<typeof start>) =>
  Effect.runPromise(files.pull("svc", [tree], () => {}))

it.each([
  [401, {}, /owner\/repo is gated: accept its terms at \S+\/owner\/repo, and set HF_TOKEN/],
  [403, { HF_TOKEN: "hf_x" }, /the account of HF_TOKEN may not read it: accept its terms/],
])(
  "one that lists its files to everybody and refuses them by %i is gated",
  async (status, env, why) => {
    for (const name of ["model.bin", "config.json"])
      refuse(hub(), `${resolved}/${name}`, status, "GatedRepo")
    await expect(pullTree(start(env))).rejects.toThrow(why)
  },
)

it("what the host of large files refuses says nothing about the hub", async () => {
  refuse(cdn(), `/blobs/${commit}/m/model.bin`, 403)
  await expect(pullTree(start())).rejects.toThrow(/model\.bin answered 403/)
})

it("is not downloaded again where its branch is at the same commit", async () => {
  const path = await pullTree(start())
  const { files } = start()
  expect(await Effect.runPromise(files.renew("svc", [tree], () => {}))).toBe(path)
  expect(cdn().seen.length).toBe(1)
  expect(hub().seen.filter(({ path }) => path.startsWith(resolved)).length).toBe(2)
})

it("says how much there is to download, and is refused before that where it does not fit", async () => {
  const freeBytes = async () => weights.length
  await expect(pullTree(start({}, { freeBytes }))).rejects.toThrow(/not enough room in .*downloads/)
  expect(cdn().seen).toEqual([])
  const totals = new Set<number | undefined>()
  const seen = ({ totalBytes }: { readonly totalBytes?: number | undefined }) =>
    void totals.add(totalBytes)
  await Effect.runPromise(start().files.pull("svc", [tree], seen))
  expect(totals).toContain(weights.length + config.length)
})

it("with a password in its address is in no lock file", async () => {
  hub().file("/m.bin?signature=secret", { body: weights })
  const own = { url: `${hub().url}/m.bin?signature=secret`, sha256: sha256(weights) }
  const { files, pull } = start()
  expect(await pull(own)).toBe(sha256(weights))
  expect(await Effect.runPromise(files.pinned([own]))).toEqual([])
})
