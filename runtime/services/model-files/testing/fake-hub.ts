import { createHash } from "node:crypto"
import type { FileServer, ServedFile } from "../../../../testing/files-server.ts"
import { sha256 } from "./fixture.ts"

export const gitBlob = (bytes: Buffer): string =>
  createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex")

/** A commit for tests: 40 times the same digit. */
export const commitNamed = (digit: string): string => digit.repeat(40)

interface Published {
  readonly repo: string
  readonly revisions: readonly string[]
  readonly commit: string
  readonly path: string
  readonly body: Buffer
  /** Large files are on another host, by a redirect; small ones come from the hub. */
  readonly isLarge: boolean
  /** What the hub says of it, if that is not the truth. */
  readonly announced?: string
  readonly served?: Partial<ServedFile>
}

/** Serves files as huggingface.co does: what it says of them is in the headers of the first reply. */
export const publish = (hub: FileServer, cdn: FileServer, file: Published): void => {
  const { repo, revisions, commit, path, body, isLarge, announced, served } = file
  const stored = `/blobs/${commit}/${path}`
  if (isLarge) cdn.file(stored, { body, etag: '"cdn"', ...served })
  for (const revision of [commit, ...revisions]) {
    const at = `/${repo}/resolve/${revision}/${path}`
    if (isLarge)
      hub.handle(at, (_, response) =>
        response
          .writeHead(302, {
            location: `${cdn.url}${stored}`,
            "x-repo-commit": commit,
            "x-linked-etag": `"${announced ?? sha256(body)}"`,
            "x-linked-size": String(body.length),
          })
          .end(),
      )
    else
      hub.file(at, {
        body,
        etag: `"${announced ?? gitBlob(body)}"`,
        headers: { "x-repo-commit": commit },
      })
  }
}

/** Refuses everything of a repository's file as the hub does. */
export const refuse = (hub: FileServer, path: string, status: number, code?: string): void =>
  hub.handle(path, (_, response) =>
    response
      .writeHead(status, { ...(code !== undefined && { "x-error-code": code }) })
      .end("Access to model is restricted."),
  )
