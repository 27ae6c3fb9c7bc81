import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import PostalMime, { type Email } from "postal-mime"
import { vi } from "vitest"
import type { Platform } from "../../../testing/platform.ts"

const read = async (folder: string): Promise<readonly Email[]> => {
  const names = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith(".eml"))
  return Promise.all(
    names.sort().map(async (name) => PostalMime.parse(await readFile(join(folder, name)))),
  )
}

/** Waits for `count` mailed links of one purpose to an address. Returns them, oldest first. */
export const mailedLinks = (
  platform: Platform,
  email: string,
  purpose: "verify" | "reset" | "email",
  count = 1,
): Promise<readonly string[]> =>
  vi.waitFor(
    async () => {
      const mails = (await read(join(platform.env.RAKIT_DATA!, "outbox"))).filter(({ to }) =>
        to?.some(({ address }) => address === email),
      )
      const links = mails.flatMap(
        ({ text }) => new RegExp(`http\\S+#${purpose}=\\S+`).exec(text ?? "")?.[0] ?? [],
      )
      if (links.length < count)
        throw new Error(`${links.length} of ${count} mails to ${email} with a link to ${purpose}`)
      return links
    },
    { timeout: 10_000, interval: 50 },
  )
