import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { parseList } from "./lists.ts"
import { type Lists, listNames } from "./prompt-filter.ts"

/**
 * Reads the lists of a folder: `nsfw.txt`, `nsfw.en.txt` and so on are one list; a list without a
 * file is empty. Throws an `Error` that names file and line, or says that there is no list at all.
 */
export const readLists = async (folder: string): Promise<Lists> => {
  const files = (await readdir(folder)).sort()
  const lists = await Promise.all(
    listNames.map(async (name) => {
      const own = files.filter((file) => new RegExp(`^${name}(\\.[\\w-]+)?\\.txt$`).test(file))
      const texts = await Promise.all(
        own.map(async (file) => parseList(file, await readFile(join(folder, file), "utf8"))),
      )
      return [name, texts.flat()] as const
    }),
  )
  if (lists.every(([, terms]) => terms.length === 0))
    throw new Error(`${folder} has no word list; expected files such as nsfw.en.txt`)
  return Object.fromEntries(lists) as unknown as Lists
}
