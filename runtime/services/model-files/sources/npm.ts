import { Result, Schema } from "effect"
import type { PullContext } from "../context.ts"
import { parseJson, readDocument } from "../download/web.ts"
import { SourceFailed, shownUrl } from "../failure.ts"
import { type NpmRegistry, npmRegistry, publicRegistry } from "./npm-registry.ts"
import type { Origin } from "./origin.ts"

const Release = Schema.Struct({ dist: Schema.Struct({ tarball: Schema.String }) })
const decodeRelease = Schema.decodeUnknownResult(Release)
const decodePackage = Schema.decodeUnknownResult(
  Schema.Struct({ versions: Schema.Record(Schema.String, Schema.Unknown) }),
)

/** Small, but not every registry knows it. */
const askVersion = async (
  context: PullContext,
  registry: NpmRegistry,
  name: string,
  version: string,
  signal: AbortSignal,
): Promise<unknown> => {
  const url = `${registry.url}/${encodeURIComponent(name).replace(/^%40/, "@")}/${version}`
  const reply = await readDocument(
    context,
    { url, headers: authorized(registry) },
    signal,
    [404, 405],
  )
  return reply.status === 200 ? parseJson(reply.text, url) : undefined
}

const askPackage = async (
  context: PullContext,
  registry: NpmRegistry,
  name: string,
  version: string,
  signal: AbortSignal,
): Promise<unknown> => {
  const url = `${registry.url}/${encodeURIComponent(name).replace(/^%40/, "@")}`
  const accept = "application/vnd.npm.install-v1+json, application/json;q=0.5"
  const found = decodePackage(
    parseJson(
      (await readDocument(context, { url, headers: { accept, ...authorized(registry) } }, signal))
        .text,
      url,
    ),
  )
  const release = Result.isSuccess(found) ? found.success.versions[version] : undefined
  if (release === undefined) throw new SourceFailed(`${shownUrl(url)} has no version ${version}`)
  return release
}

const authorized = ({ authorization }: NpmRegistry): Readonly<Record<string, string>> =>
  authorization === undefined ? {} : { authorization }

/** As npm does: mirrors often leave the public address in what they pass on. */
const onThisRegistry = (tarball: string, registry: string): string => {
  const url = new URL(tarball, `${registry}/`)
  const own = new URL(registry)
  if (url.origin !== publicRegistry || own.origin === publicRegistry) return url.href
  return `${registry}${url.pathname}`
}

/** Finds the tarball of a published version. Fails with `SourceFailed`. */
export const resolveNpm = async (
  context: PullContext,
  name: string,
  version: string,
  pinned: string | undefined,
  signal: AbortSignal,
): Promise<Origin> => {
  const registry = await npmRegistry(context.env, context.cwd, name)
  if (!URL.canParse(registry.url)) throw new SourceFailed("npm's registry is not a valid address")
  const release = decodeRelease(
    (await askVersion(context, registry, name, version, signal)) ??
      (await askPackage(context, registry, name, version, signal)),
  )
  if (Result.isFailure(release))
    throw new SourceFailed(`${shownUrl(registry.url)} named no tarball`)
  const url = onThisRegistry(release.success.dist.tarball, registry.url)
  const headers = new URL(url).origin === new URL(registry.url).origin ? authorized(registry) : {}
  return { form: "tgz", files: [{ url, headers, path: "package.tgz", sha256: pinned }] }
}
