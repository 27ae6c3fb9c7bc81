import { Result, Schema } from "effect"
import type { Env, PullContext } from "../context.ts"
import type { RemoteFile } from "../download/download.ts"
import { parseJson, readDocument } from "../download/web.ts"
import { SourceFailed, shownUrl } from "../failure.ts"
import { isSafePath } from "../safe-path.ts"
import type { ResolvedSource } from "./artifact.ts"
import type { SourceUrl } from "./source-url.ts"

type HubSource = Extract<SourceUrl, { scheme: "hf" }>

const publicHub = "https://huggingface.co"
const maxFiles = 2_000

// https://huggingface.co/docs/hub/api: GET /api/models/{repo}/tree/{revision}/{path}
const Listing = Schema.Array(
  Schema.Struct({
    type: Schema.String,
    path: Schema.String,
    lfs: Schema.optionalKey(Schema.NullOr(Schema.Struct({ oid: Schema.String }))),
  }),
)
const decodeListing = Schema.decodeUnknownResult(Listing)

const hubOf = (env: Env) => {
  const base = (env.HF_ENDPOINT || publicHub).replace(/\/+$/, "")
  if (!URL.canParse(base)) throw new SourceFailed("HF_ENDPOINT is not a valid address")
  const headers: Readonly<Record<string, string>> = env.HF_TOKEN
    ? { authorization: `Bearer ${env.HF_TOKEN}` }
    : {}
  return { base, headers }
}

const encodePath = (path: string): string => path.split("/").map(encodeURIComponent).join("/")

const nextPage = (headers: Headers, url: string): string | undefined => {
  const link = /<([^>]+)>\s*;\s*rel="?next"?/.exec(headers.get("link") ?? "")?.[1]
  return link && URL.canParse(link, url) ? new URL(link, url).href : undefined
}

const listFolder = async (
  context: PullContext,
  source: HubSource,
  signal: AbortSignal,
): Promise<readonly RemoteFile[]> => {
  const { base, headers } = hubOf(context.env)
  const files: RemoteFile[] = []
  let url: string | undefined =
    `${base}/api/models/${source.repo}/tree/${encodeURIComponent(source.revision)}${source.path && `/${encodePath(source.path)}`}?recursive=true`
  while (url !== undefined) {
    // the token must not be sent to another host
    if (new URL(url).origin !== new URL(base).origin)
      throw new SourceFailed(`${shownUrl(base)} continues its listing on another host`)
    const page = await readDocument(context, { url, headers }, signal)
    const listing = decodeListing(parseJson(page.text, url))
    if (Result.isFailure(listing)) throw new SourceFailed(`${shownUrl(url)} is not a listing`)
    for (const { type, path, lfs } of listing.success)
      if (type === "file") files.push(remoteFile(context, source, path, lfs?.oid))
    if (files.length > maxFiles)
      throw new SourceFailed(`the folder has more than ${maxFiles} files`)
    url = nextPage(page.headers, url)
  }
  if (files.length === 0) throw new SourceFailed("the folder is empty")
  return files
}

const remoteFile = (
  context: PullContext,
  source: HubSource,
  path: string,
  sha256: string | undefined,
): RemoteFile => {
  if (!isSafePath(path))
    throw new SourceFailed(`the hub lists an unsafe path: ${JSON.stringify(path)}`)
  const { base, headers } = hubOf(context.env)
  return {
    url: `${base}/${source.repo}/resolve/${encodeURIComponent(source.revision)}/${encodePath(path)}`,
    headers,
    path,
    sha256,
  }
}

/** One file, or all files below a folder, of a model repository. Fails with `SourceFailed`. */
export const resolveHub = async (
  context: PullContext,
  source: HubSource,
  pinned: string | undefined,
  signal: AbortSignal,
): Promise<ResolvedSource> => {
  if (source.folder) return { form: "plain", files: await listFolder(context, source, signal) }
  const file = remoteFile(context, source, source.path, pinned)
  return { form: "plain", files: [{ ...file, path: source.path.split("/").at(-1) ?? "file" }] }
}
