import { readFileSync } from "node:fs"
import { join } from "node:path"
import { pages, root } from "./site/pages.ts"

/** A fenced block of code of a page. */
export interface Block {
  readonly page: string
  readonly line: number
  readonly language: string
  readonly code: string
  /** Why it is not run, from `<!-- not run: why -->` before it. */
  readonly notRun: string | undefined
}

const fence =
  /(?:^ *<!-- not run: (?<why>[^\n]*?) -->\n\n?)?^(?<indent> *)```(?<language>[\w-]*)[^\n]*\n(?<code>[\s\S]*?)^ *```\s*$/gm

export const blocksIn = (page: string, text: string): readonly Block[] =>
  [...text.matchAll(fence)].map((match) => {
    const { why, indent = "", language = "", code = "" } = match.groups!
    return {
      page,
      line: text.slice(0, match.index).split("\n").length,
      language,
      code: code.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
      notRun: why,
    }
  })

/** The blocks of all pages of the guide; decisions and the changelog are history. */
export const guideBlocks = (): readonly Block[] =>
  [...pages.keys()]
    .filter((page) => !["DECISIONS.md", "CHANGELOG.md"].includes(page))
    .flatMap((page) => blocksIn(page, readFileSync(join(root, page), "utf8")))
