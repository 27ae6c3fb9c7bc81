import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { expect, it } from "vitest"
import { openExpired } from "./testing/expired-upstream.ts"
import { chat, openRemote } from "./testing/open-remote.ts"
import { openScripted } from "./testing/scripted-upstream.ts"

const healthOf = (remote: ReturnType<typeof openRemote>): Promise<string> =>
  Effect.runPromise(
    Effect.match(remote.health.check.check, { onSuccess: () => "well", onFailure: (why) => why }),
  )

const openAt = async (upstream: object) => {
  const remote = openRemote()
  const loaded = await remote.open("chat", {
    upstreams: [{ model: "m", ...upstream }],
    connectTimeoutMs: 2_000,
    retries: 0,
  })
  return { remote, loaded }
}

it("names a certificate that has expired", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-tls-"))
  const { url, caFile, close } = await openExpired(folder)
  const known = await openAt({ url, caFile })
  expect(await healthOf(known.remote)).toContain("its certificate has expired: renew it")
  expect((await chat(known.loaded)).error?.code).toBe("backend_error")
  await known.remote.close()
  close()
  rmSync(folder, { recursive: true })
})

it("names an address where nothing listens, and one that is no API", async () => {
  const upstream = await openScripted()
  upstream.list((res) => res.writeHead(404).end())
  const { url } = upstream
  const missing = await openAt({ url })
  expect(await healthOf(missing.remote)).toContain(
    "it has no such route or model: correct url or model (status 404)",
  )
  await upstream.close()
  const gone = await openAt({ url })
  expect(await healthOf(gone.remote)).toContain(
    "nothing listens at the address: start the server, or correct url (ECONNREFUSED)",
  )
  expect(gone.loaded.servedAt).toContain("nothing listens at the address")
  // everybody may read this
  expect(gone.loaded.servedBy).toBe("remote")
  expect((await chat(gone.loaded)).error?.code).toBe("backend_error")
  await Promise.all([missing, gone].map(({ remote }) => remote.close()))
})
