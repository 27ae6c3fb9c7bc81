import { readFile } from "node:fs/promises"

/**
 * Returns the text of another tool's configuration file; "" for one that can't be read, as those
 * tools do.
 */
export const readConfigFile = (path: string): Promise<string> =>
  readFile(path, "utf8").catch(() => "")

/**
 * `key = value` lines by section; `#` and `;` begin comment lines. Lines before the first section
 * are in section "".
 */
export const parseIni = (text: string): ReadonlyMap<string, ReadonlyMap<string, string>> => {
  const sections = new Map<string, Map<string, string>>()
  let section = ""
  for (const raw of text.split(/\r?\n/)) {
    const line = raw.trim()
    const header = /^\[(.*)\]$/.exec(line)
    if (header) section = header[1] ?? ""
    const at = line.indexOf("=")
    if (header || at < 1 || /^[#;]/.test(line)) continue
    const entries = sections.get(section) ?? new Map<string, string>()
    sections.set(section, entries)
    entries.set(line.slice(0, at).trim(), line.slice(at + 1).trim())
  }
  return sections
}
