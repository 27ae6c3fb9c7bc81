/**
 * True for a relative path that stays below its root: no `..`, drive letter, backslash or control
 * characters.
 */
export const isSafePath = (path: string): boolean =>
  path.length > 0 &&
  path.length <= 1024 &&
  !/[\\\p{Cc}]/u.test(path) &&
  !/^[A-Za-z]:/.test(path) &&
  path
    .split("/")
    .every((name) => name !== "" && name !== "." && name !== ".." && name.length <= 255)

/** Decodes percent-encoding; returns malformed text unchanged. */
export const decodePercent = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The last segment of a URL's path, decoded; "" for none. */
export const lastNameOf = (url: string): string =>
  decodePercent(new URL(url).pathname.split("/").at(-1) ?? "")
