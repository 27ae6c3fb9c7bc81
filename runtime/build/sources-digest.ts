// A step of `npm run build`: writes down which sources were compiled, by which receipts tell builds
// of one version apart.
import { createHash } from "node:crypto"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, sep } from "node:path"

const isSource = (path: string): boolean =>
  /\.(ts|js|mjs|cpp|h|sql)$/.test(path) && !/\.test\.ts$|(^|\/)(testing|fixtures|web)\//.test(path)

/**
 * Returns the SHA-256 of what an answer may depend on: the sources, but for tests and pages, with
 * their places, and the pinned packages.
 */
export const sourcesDigest = (root: string): string => {
  const paths = ["core", "plugins", "runtime"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map(
      (path) => `${folder}/${path.split(sep).join("/")}`,
    ),
  )
  const hash = createHash("sha256")
  for (const path of ["package.json", ...paths.filter(isSource).sort()])
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(root, path)))
      .update("\0")
  return hash.digest("hex")
}

const [, script, folder] = process.argv
if (script?.endsWith("sources-digest.js")) {
  if (!folder) throw new Error("name the folder of the compiled files")
  writeFileSync(join(folder, "runtime", "sources.sha256"), sourcesDigest(join(folder, "..")))
}
