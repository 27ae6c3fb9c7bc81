import { execFileSync } from "node:child_process"
import { once } from "node:events"
import { readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import { join } from "node:path"

/**
 * A server whose certificate ended yesterday; its authority is `caFile`. Writes its keys into
 * `folder`.
 */
export const openExpired = async (
  folder: string,
): Promise<{ readonly url: string; readonly caFile: string; close(): void }> => {
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
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    caFile: at("ca.pem"),
    close: () => server.close(),
  }
}
