import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, it } from "vitest"

const root = fileURLToPath(new URL("..", import.meta.url))

const markdownFiles = (): readonly string[] =>
  execFileSync("git", ["ls-files", "*.md"], { cwd: root, encoding: "utf8" })
    .split("\n")
    .filter((file) => file !== "" && existsSync(join(root, file)))

/** Targets of the relative links in a file, without their anchors. */
const linksOf = (file: string): readonly string[] =>
  [...readFileSync(join(root, file), "utf8").matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => target.replace(/#.*$/, ""))
    .filter((target) => target !== "" && !/^[a-z]+:/.test(target))

it.each(markdownFiles())("the links of %s lead to files that exist", (file) => {
  const broken = linksOf(file).filter(
    (target) => !existsSync(join(root, normalize(join(dirname(file), target)))),
  )
  expect(broken).toEqual([])
})

/**
 * `plugins/x/y.ts -> z`: the ways that ARCHITECTURE.md names are real files, in their folder or a
 * neighbour's.
 */
const waysOf = (text: string): readonly string[] => {
  const section = text.slice(
    text.indexOf("## Five ways through the code"),
    text.indexOf("## Where is"),
  )
  return [...section.matchAll(/`([\w-]+(?:\/[\w.-]+)*)`/g)].map(([, name = ""]) => name)
}

it("every file on a way through the code exists", () => {
  const files = execFileSync("git", ["ls-files"], { cwd: root, encoding: "utf8" }).split("\n")
  const text = readFileSync(join(root, "ARCHITECTURE.md"), "utf8")
  const names = new Set(files.map((file) => `/${file.replace(/\.(ts|js|mjs)$/, "")}`))
  const isKnown = (way: string) =>
    [...names].some((name) => name.endsWith(`/${way.replace(/\.ts$/, "")}`)) ||
    files.some((file) => file.includes(`/${way.replace(/\/$/, "")}/`))
  const notFiles = new Set(["create", "register", "start", "Webhook", "X-Cost-IDR"])
  expect(waysOf(text).filter((way) => !notFiles.has(way) && !isKnown(way))).toEqual([])
})
