import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Platform, runCli } from "../../../testing/platform.ts"

interface Payload {
  readonly evidence: Readonly<Record<string, unknown>>
}

/** Receipts of a server's calls, and `rakit replay` of them; files are written to `folder`. */
export const replaysOf = (platform: Platform, folder: string, config: string) => {
  const headers = { authorization: `Bearer ${platform.credentials.api_key}` }
  const get = async (from: string) =>
    (await (await fetch(platform.url + from, { headers })).json()) as { readonly jws: string }
  /** The receipt as it is answered, and what it says. */
  const receiptOf = async (callId: string | null | undefined) => {
    const receipt = await get(`/v1/receipts/${callId}`)
    const text = Buffer.from(receipt.jws.split(".")[1]!, "base64url").toString()
    return { receipt, payload: JSON.parse(text) as Payload }
  }
  const write = (name: string, value: object): string => {
    const file = join(folder, name)
    writeFileSync(file, JSON.stringify(value))
    return file
  }
  /** `isChecked`: by the keys that the server publishes. */
  const replay = async (name: string, receipt: object, request: object, isChecked = true) => {
    const files = [write(`${name}.json`, receipt), write(`${name}-request.json`, request)]
    const jwks = isChecked
      ? ["--jwks", write("jwks.json", await get("/.well-known/jwks.json"))]
      : []
    return runCli(["replay", ...files, config, ...jwks], { ...platform.env })
  }
  return { receiptOf, replay }
}
