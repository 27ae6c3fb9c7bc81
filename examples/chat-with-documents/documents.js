import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { basename } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"

const digestOf = async (path) => {
  const hash = createHash("sha256")
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest("hex")
}

/** Finds what was uploaded before, by the digest in its metadata. */
const findUploaded = async (client, sha256) => {
  for await (const file of client.files.list({ purpose: "knowledge", limit: 100 }))
    if (file.metadata?.sha256 === sha256 && file.status !== "failed") return file
}

const progressOf = ({ status, progress = {} }) => {
  const { stage = status, pages, chunks, chunks_embedded: embedded } = progress
  const counts = [
    pages && `${pages} pages`,
    chunks && `${chunks} chunks`,
    embedded && `${embedded} embedded`,
  ]
  return [stage, ...counts.filter(Boolean)].join(", ")
}

/**
 * Uploads a document, unless it is there, and waits until it can be searched, telling `show` how
 * far it is. Returns the file object; fails with the reason that the server gives.
 */
export const addDocument = async (client, path, show) => {
  const sha256 = await digestOf(path)
  let file =
    (await findUploaded(client, sha256)) ??
    (await client.files.create({
      file: createReadStream(path),
      purpose: "knowledge",
      metadata: { sha256 },
    }))
  // files.waitForProcessing does the same without progress, but does not know the status "failed"
  for (let shown; ; file = await client.files.retrieve(file.id)) {
    const now = `${basename(path)}: ${progressOf(file)}`
    if (now !== shown) show(now)
    shown = now
    if (file.status === "processed") return file
    if (file.status === "failed") throw new Error(`${basename(path)}: ${file.status_details}`)
    await sleep(2000) // a new key may ask 60 times a minute
  }
}
