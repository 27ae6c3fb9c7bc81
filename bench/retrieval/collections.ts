import { execFile } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { root } from "../deployment/code.ts"

const run = promisify(execFile)

const filesIn = (folder: string, pattern: RegExp): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => pattern.test(name))
    .sort()
    .map((name) => join(folder, name))

export interface Judged {
  readonly text: string
  /** Grades (1 to 3) of the documents that are relevant, by their index. */
  readonly grades: ReadonlyMap<number, number>
}

/** A test collection: documents, queries, and which documents are relevant to each query. */
export interface Collection {
  readonly name: string
  readonly documents: readonly string[]
  readonly queries: readonly Judged[]
}

interface Pair {
  readonly query: string
  readonly text: string
}

const fewestWords = 15

/** Each query's one relevant document is its own text, which does not hold the query itself. */
const fromPairs = (name: string, pairs: readonly Pair[]): Collection => {
  const kept = pairs.filter(({ text }) => text.split(/\s+/).length >= fewestWords)
  return {
    name,
    documents: kept.map(({ text }) => text),
    queries: kept.map(({ query }, i) => ({ text: query, grades: new Map([[i, 3]]) })),
  }
}

const podText = (pod: string): string =>
  pod
    .replace(/^=\w+.*$/gm, "")
    .replace(/[A-Z]<<+\s([\s\S]*?)\s>>+/g, "$1")
    .replace(/[A-Z]<([^<>]*)>/g, "$1")
    .replace(/\n{3,}/g, "\n\n")
    .trim()

/** The questions of Perl's FAQ; the answers with their examples of code. */
const perlfaq = (folder: string): Collection => {
  const pages = filesIn(folder, /\/perlfaq[1-9]\.pod$/)
  const pairs = pages.flatMap((page) =>
    readFileSync(page, "utf8")
      .split(/^=head2 /m)
      .slice(1)
      .map((part) => {
        const [question = "", ...answer] = (part.split(/^=head1/m)[0] ?? "").split("\n")
        return { query: podText(question), text: podText(answer.join("\n")) }
      }),
  )
  return fromPairs("perlfaq", pairs)
}

const entities: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"' }

const xmlText = (xml: string): string =>
  xml
    .replace(/<!--[\s\S]*?-->/g, " ")
    .replace(/<\/(p|title|item|section|note|steps|td)>/g, "\n\n")
    .replace(/<[^>]+>/g, " ")
    .replace(/&(lt|gt|amp|quot);/g, (_, name: string) => entities[name]!)
    .replace(/[ \t\n]*\n\s*\n\s*/g, "\n\n")
    .replace(/[ \t]*\n[ \t]*|[ \t]+/g, " ")
    .trim()

/** The titles of GNOME's help in a language; the pages without them. */
const gnomeHelp = (folder: string, name: string, language: string): Collection => {
  const pages = filesIn(join(folder, `usr/share/help/${language}/gnome-help`), /\.page$/)
  const pairs = pages.flatMap((page) => {
    const body = readFileSync(page, "utf8").replace(/<info>[\s\S]*?<\/info>/g, " ")
    const title = /<title>([\s\S]*?)<\/title>/.exec(body)
    if (!title) return []
    return [{ query: xmlText(title[1]!), text: xmlText(body.replace(title[0], " ")) }]
  })
  return fromPairs(name, pairs)
}

interface Written {
  readonly query: string
  readonly passages: readonly { readonly text: string; readonly grade: number }[]
}

/** Everyday questions of this repository with passages graded by hand; all passages together. */
const written = (): Collection => {
  const file = join(root, "plugins/model-minilm-reranker/train/written-eval.jsonl")
  const lines = readFileSync(file, "utf8").trim().split("\n")
  const items = lines.map((line) => JSON.parse(line) as Written)
  const documents = [...new Set(items.flatMap(({ passages }) => passages.map(({ text }) => text)))]
  const queries = items.map(({ query, passages }) => ({
    text: query,
    grades: new Map(
      passages
        .filter(({ grade }) => grade > 0)
        .map(({ text, grade }) => [documents.indexOf(text), grade] as const),
    ),
  }))
  return { name: "written-eval", documents, queries }
}

/** Downloads Debian packages with apt, and unpacks them into folders of their names. */
const unpack = async (packages: readonly string[], folder: string): Promise<void> => {
  mkdirSync(folder, { recursive: true })
  await run("apt-get", ["download", ...packages], { cwd: folder })
  for (const name of packages) {
    const [file] = filesIn(folder, new RegExp(`^${name}_.*\\.deb$`))
    await run("dpkg-deb", ["-x", file!, join(folder, name)])
  }
}

/** Rebuilds all collections; the packages are downloaded into `folder`. */
export const collect = async (folder: string): Promise<readonly Collection[]> => {
  await unpack(["perl-doc", "gnome-user-docs"], folder)
  const help = join(folder, "gnome-user-docs")
  return [
    perlfaq(join(folder, "perl-doc")),
    gnomeHelp(help, "gnome-help", "C"),
    gnomeHelp(help, "gnome-help, German", "de"),
    written(),
  ]
}
