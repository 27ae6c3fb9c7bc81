import { Result, Schema } from "effect"
import { urlOf } from "../../../../core/url.ts"
import type { Env, PullContext } from "../context.ts"
import type { RemoteFile } from "../download/download.ts"
import { parseJson, readDocument, readHead, type WebHead } from "../download/web.ts"
import { DamagedContent, NotThere, SourceFailed, shownUrl } from "../failure.ts"
import { isSafePath } from "../safe-path.ts"
import type { ResolvedSource } from "./artifact.ts"
import { formatSourceUrl, type SourceUrl } from "./source-url.ts"

type HubSource = Extract<SourceUrl, { scheme: "hf" }>

const publicHub = "https://huggingface.co"
const maxFiles = 2_000

// https://huggingface.co/docs/hub/api: GET /api/models/{repo}/tree/{revision}/{path}
const Listing = Schema.Array(
  Schema.Struct({
    type: Schema.String,
    path: Schema.String,
    oid: Schema.optionalKey(Schema.String),
    size: Schema.optionalKey(Schema.Int),
    lfs: Schema.optionalKey(Schema.NullOr(Schema.Struct({ oid: Schema.String }))),
  }),
)
const decodeListing = Schema.decodeUnknownResult(Listing)
const decodeRevision = Schema.decodeUnknownResult(Schema.Struct({ sha: Schema.String }))

const hubOf = (env: Env) => {
  const base = (env.HF_ENDPOINT || publicHub).replace(/\/+$/, "")
  if (!urlOf(base)) throw new SourceFailed("HF_ENDPOINT is not a valid address")
  const token = env.HF_TOKEN?.trim() ?? ""
  // fetch would put it into its message
  if (!/^[\x21-\x7e]*$/.test(token))
    throw new SourceFailed("HF_TOKEN holds characters that no token has")
  const headers: Readonly<Record<string, string>> = token
    ? { authorization: `Bearer ${token}` }
    : {}
  return { base, headers, hasToken: token !== "" }
}

const encodePath = (path: string): string => path.split("/").map(encodeURIComponent).join("/")

const isCommit = (revision: string): boolean => /^[0-9a-f]{40}$/.test(revision)

/** Why the hub does not give it: its status, and the code that it sends in a header. */
const refusal = (
  context: PullContext,
  source: HubSource,
  { status, headers }: Pick<WebHead, "status" | "headers">,
) => {
  const { base, hasToken } = hubOf(context.env)
  const { repo, revision, path } = source
  const code = headers.get("x-error-code")
  const page = `${shownUrl(base).replace(/\/$/, "")}/${repo}`
  if (code === "GatedRepo" || status === 403)
    return new SourceFailed(
      hasToken
        ? `${repo} is gated, and the account of HF_TOKEN may not read it: accept its terms at ${page}, and let the token read gated repositories (the hub answered ${status})`
        : `${repo} is gated: accept its terms at ${page}, and set HF_TOKEN to a token of that account (the hub answered ${status})`,
    )
  if (status === 401)
    return new SourceFailed(
      hasToken
        ? `the hub does not take the token in HF_TOKEN, or has no repository ${repo} (it answered 401)`
        : `the hub has no public repository ${repo}: correct the name, or set HF_TOKEN if it is private or gated (it answered 401)`,
    )
  if (code === "RevisionNotFound") return new NotThere(`${repo} has no revision ${revision}`)
  if (code === "EntryNotFound") return new NotThere(`${repo} has no ${path} at ${revision}`)
  if (code === "RepoNotFound") return new NotThere(`the hub has no repository ${repo}`)
  const message = `${shownUrl(base)} answered ${status} for ${formatSourceUrl(source)}`
  return status === 404 ? new NotThere(message) : new SourceFailed(message)
}

const refused = [401, 403, 404]

/** The commit that the hub has for a branch or tag; undefined for a mirror that can't say it. */
const commitOf = async (
  context: PullContext,
  source: HubSource,
  signal: AbortSignal,
): Promise<string | undefined> => {
  if (isCommit(source.revision)) return source.revision
  const { base, headers } = hubOf(context.env)
  const url = `${base}/api/models/${source.repo}/revision/${encodeURIComponent(source.revision)}`
  const page = await readDocument(context, { url, headers }, signal, refused)
  if (page.status === 404 && !page.headers.has("x-error-code")) return undefined
  if (page.status !== 200) throw refusal(context, source, page)
  const decoded = decodeRevision(parseJson(page.text, url))
  if (Result.isFailure(decoded) || !isCommit(decoded.success.sha))
    throw new SourceFailed(`${shownUrl(url)} names no commit`)
  return decoded.success.sha
}

const nextPage = (headers: Headers, url: string): string | undefined => {
  const link = /<([^>]+)>\s*;\s*rel="?next"?/.exec(headers.get("link") ?? "")?.[1]
  return link && urlOf(link, url)?.href
}

/** Whether a path below the source's folder is one that it asks for. */
const asksFor = ({ path: folder, only }: HubSource) => {
  if (!only) return () => true
  const patterns = only.map((pattern) => {
    const parts = pattern.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
    return new RegExp(`^${parts.join("[^/]*")}$`, "u")
  })
  const from = folder === "" ? 0 : folder.length + 1
  return (path: string) => patterns.some((pattern) => pattern.test(path.slice(from)))
}

const listFolder = async (
  context: PullContext,
  source: HubSource,
  signal: AbortSignal,
): Promise<readonly RemoteFile[]> => {
  const { base, headers } = hubOf(context.env)
  const files: RemoteFile[] = []
  const isAsked = asksFor(source)
  let url: string | undefined =
    `${base}/api/models/${source.repo}/tree/${encodeURIComponent(source.revision)}${source.path && `/${encodePath(source.path)}`}?recursive=true`
  while (url !== undefined) {
    // the token must not be sent to another host
    if (new URL(url).origin !== new URL(base).origin)
      throw new SourceFailed(`${shownUrl(base)} continues its listing on another host`)
    const page = await readDocument(context, { url, headers }, signal, refused)
    if (page.status !== 200) throw refusal(context, source, page)
    const listing = decodeListing(parseJson(page.text, url))
    if (Result.isFailure(listing)) throw new SourceFailed(`${shownUrl(url)} is not a listing`)
    for (const { type, path, oid, lfs, size: bytes } of listing.success)
      if (type === "file" && isAsked(path)) {
        const said = { sha256: lfs?.oid, gitBlob: lfs ? "" : oid, bytes }
        files.push(remoteFile(context, source, path, said))
      }
    if (files.length > maxFiles)
      throw new SourceFailed(`the folder has more than ${maxFiles} files`)
    url = nextPage(page.headers, url)
  }
  if (files.length === 0)
    throw new SourceFailed(
      `the folder has no ${source.only ? `file ${source.only.join(" or ")}` : "files"}`,
    )
  return files
}

const remoteFile = (
  context: PullContext,
  source: HubSource,
  path: string,
  { sha256, gitBlob = "", bytes }: Pick<RemoteFile, "sha256" | "gitBlob" | "bytes">,
): RemoteFile => {
  if (!isSafePath(path))
    throw new SourceFailed(`the hub lists an unsafe path: ${JSON.stringify(path)}`)
  const { base, headers } = hubOf(context.env)
  return {
    url: `${base}/${source.repo}/resolve/${encodeURIComponent(source.revision)}/${encodePath(path)}`,
    headers,
    path,
    sha256,
    bytes,
    ...(/^[0-9a-f]{40}$/.test(gitBlob) && { gitBlob }),
    // a gated repository lists its files to everybody
    refusal: (reply) => refusal(context, { ...source, path }, reply),
  }
}

const tag = (headers: Headers, name: string): string =>
  (headers.get(name) ?? "").replace(/^W\//, "").replace(/^"|"$/g, "")

/**
 * What the hub announces of a file: the commit, and its digest (of a large one the SHA-256, of
 * others the name in git).
 */
const announced = async (context: PullContext, source: HubSource, signal: AbortSignal) => {
  const { url, headers } = remoteFile(context, source, source.path, { sha256: undefined })
  const head = await readHead(context, { url, headers }, signal)
  if (head.status >= 400) throw refusal(context, source, head)
  const commit = tag(head.headers, "x-repo-commit")
  const linked = tag(head.headers, "x-linked-etag")
  const isHub = isCommit(commit)
  return {
    commit: isHub ? commit : undefined,
    sha256: /^[0-9a-f]{64}$/.test(linked) ? linked : undefined,
    gitBlob: isHub ? linked || tag(head.headers, "etag") : undefined,
  }
}

const resolveFile = async (
  context: PullContext,
  source: HubSource,
  pinned: string | undefined,
  signal: AbortSignal,
): Promise<ResolvedSource> => {
  const { commit, sha256, gitBlob } = await announced(context, source, signal)
  const name = formatSourceUrl(source)
  if (isCommit(source.revision) && commit !== undefined && commit !== source.revision)
    throw new DamagedContent(`the hub answers for the commit ${commit} when asked for ${name}`)
  if (pinned !== undefined && sha256 !== undefined && sha256 !== pinned)
    throw new DamagedContent(
      `the hub announces sha256 ${sha256} for ${name}, not the pinned ${pinned}`,
    )
  const at = { ...source, revision: commit ?? source.revision }
  const file = remoteFile(context, at, source.path, { sha256: pinned ?? sha256, gitBlob })
  const path = source.path.split("/").at(-1) ?? "file"
  return {
    form: "plain",
    files: [{ ...file, path }],
    commit: isCommit(at.revision) ? at.revision : undefined,
  }
}

/**
 * One file, or all files below a folder, of a model repository, at the commit that its revision
 * names now. Fails with `SourceFailed`.
 */
export const resolveHub = async (
  context: PullContext,
  source: HubSource,
  pinned: string | undefined,
  signal: AbortSignal,
): Promise<ResolvedSource> => {
  if (!source.folder) return resolveFile(context, source, pinned, signal)
  const commit = await commitOf(context, source, signal)
  const at = { ...source, revision: commit ?? source.revision }
  const files = await listFolder(context, at, signal)
  return { form: "plain", files, commit }
}
