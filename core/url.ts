/**
 * The URL that a text is, relative to `base` where that is given; undefined where it is none. Stands
 * for `URL.canParse`, which in Node 20, once V8 has compiled its caller, reads a text of Latin-1
 * characters as UTF-8 and refuses `https://münchen.de/`.
 */
export const urlOf = (text: string, base?: string): URL | undefined => {
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}
