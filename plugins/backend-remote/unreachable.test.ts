import { execFileSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { expect, it } from "vitest"
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
  const at = (name: string) => join(folder, name)
  const openssl = (...args: string[]) =>
    execFileSync("openssl", args, { cwd: folder, stdio: "pipe" })
  const subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
  openssl("req", "-x509", ...key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca")
  openssl("req", ...key, "-keyout", "key.pem", "-out", "csr.pem", ...subject)
  writeFileSync(at("ext"), "subjectAltName=IP:127.0.0.1")
  // as valid as a certificate of -1 day: it ended yesterday
  const signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "ext"]
  openssl("x509", "-req", "-in", "csr.pem", ...signed, "-days", "-1", "-out", "cert.pem")
  const server = createServer(
    { key: readFileSync(at("key.pem")), cert: readFileSync(at("cert.pem")) },
    (_, res) => res.end("{}"),
  ).listen(0, "127.0.0.1")
  await once(server, "listening")
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const known = await openAt({ url, caFile: at("ca.pem") })
  expect(await healthOf(known.remote)).toContain("its certificate has expired")
  expect((await chat(known.loaded)).error?.code).toBe("backend_error")
  await known.remote.close()
  server.close()
  rmSync(folder, { recursive: true })
})

it("names an address where nothing listens, and one that is no API", async () => {
  const upstream = await openScripted()
  upstream.list((res) => res.writeHead(404).end())
  const { url } = upstream
  const missing = await openAt({ url })
  expect(await healthOf(missing.remote)).toContain("it has no such route or model (status 404)")
  await upstream.close()
  const gone = await openAt({ url })
  expect(await healthOf(gone.remote)).toContain("nothing listens at the address (ECONNREFUSED)")
  expect(gone.loaded.servedBy).toContain("nothing listens at the address")
  expect((await chat(gone.loaded)).error?.code).toBe("backend_error")
  await Promise.all([missing, gone].map(({ remote }) => remote.close()))
})
