import { execFile } from "node:child_process"
import { promisify } from "node:util"

const run = promisify(execFile)

/** Words of two characters and more: single ones are often parts of formulas, in any order. */
const wordsOf = (text: string): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const word of text
    .normalize("NFKC")
    .toLowerCase()
    .match(/[\p{L}\p{N}]{2,}/gu) ?? [])
    counts.set(word, (counts.get(word) ?? 0) + 1)
  return counts
}

/** Which share of the words of `reference`, each as often as it stands there, `text` has. */
export const wordRecall = (reference: string, text: string): number => {
  const found = wordsOf(text)
  let [all, kept] = [0, 0]
  for (const [word, times] of wordsOf(reference)) {
    all += times
    kept += Math.min(times, found.get(word) ?? 0)
  }
  return all > 0 ? kept / all : Number.NaN
}

/** The text by Poppler's pdftotext; undefined where it finds none or gives up. */
export const popplerText = async (file: string): Promise<string | undefined> => {
  try {
    const options = { maxBuffer: 2 ** 29, timeout: 120_000 }
    const { stdout } = await run("pdftotext", ["-enc", "UTF-8", file, "-"], options)
    return /\S/.test(stdout) ? stdout : undefined
  } catch {
    return undefined
  }
}

export const hasPoppler = async (): Promise<boolean> =>
  run("pdftotext", ["-v"]).then(
    () => true,
    () => false,
  )
