import { existsSync, readdirSync } from "node:fs"
import { dirname, join, normalize } from "node:path"

/** The pages of the guide: where each comes from in the repository, and where it is on the site. */
export const root = join(import.meta.dirname, "..", "..")

const readmesIn = (folder: string): readonly (readonly [string, string])[] =>
  readdirSync(join(root, folder))
    .filter((name) => existsSync(join(root, folder, name, "README.md")))
    .map((name) => [`${folder}/${name}/README.md`, `${folder}/${name}.md`])

const pagesOf = (folder: string): readonly (readonly [string, string])[] =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".md"))
    .map((name) => [`${folder}/${name}`, name])

/** From the file in the repository to that of the site. */
export const pages: ReadonlyMap<string, string> = new Map([
  ["README.md", "quickstart.md"],
  ["ARCHITECTURE.md", "architecture.md"],
  ["CONTRIBUTING.md", "plugin-authors.md"],
  ["DECISIONS.md", "decisions.md"],
  ["CHANGELOG.md", "changelog.md"],
  ["bench/README.md", "benchmarks.md"],
  ["deploy/README.md", "deployment.md"],
  ["runtime/services/model-files/README.md", "model-files.md"],
  ...pagesOf("docs"),
  ...readmesIn("plugins"),
  ...readmesIn("examples"),
])

export const isImage = (path: string): boolean => /\.(svg|webp|png|jpg)$/.test(path)

/** A link to a folder is one to its README. */
const pageAt = (path: string): string | undefined =>
  pages.get(path) ?? pages.get(`${path.replace(/\/$/, "")}/README.md`)

/**
 * A page of the repository as one of the site: links to other pages lead to these, images to the
 * copies of them, and what is no page (sources, configs) is named without a link. Code stays as it
 * is. `link` sees each target, as a path from the root.
 */
export const forSite = (source: string, text: string, image: (path: string) => void): string => {
  const rewritten = (whole: string, label: string, target: string): string => {
    if (/^([a-z]+:|#)/.test(target)) return whole
    const [file = "", anchor] = target.split("#")
    const path = normalize(join(dirname(source), file))
    if (isImage(path) && whole.startsWith("!")) {
      image(path)
      return `${whole.slice(0, whole.indexOf("]("))}](/${path})`
    }
    const page = pageAt(path)
    if (page === undefined) return label.includes("`") ? label : `\`${label}\``
    return `[${label}](/${page.replace(/\.md$/, "")}${anchor === undefined ? "" : `#${anchor}`})`
  }
  const shown = text.replaceAll(/^ *<!-- not run: [^\n]* -->\n+/gm, "")
  const parts = shown.split(/(^ *```[\s\S]*?^ *```\s*?$|`[^`\n]+`(?![^[\n]*\]\())/m)
  return parts
    .map((part, index) =>
      index % 2
        ? part
        : part.replaceAll(/!?\[((?:[^\][]|\[[^\]]*\])*)\]\(([^()\s]+)\)/g, rewritten),
    )
    .join("")
}
