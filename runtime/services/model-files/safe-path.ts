/** A relative path of plain names below its root: no `..`, no drive letter, no backslash, no control characters. */
export const isSafePath = (path: string): boolean =>
  path.length > 0 &&
  path.length <= 1024 &&
  !/[\\\p{Cc}]/u.test(path) &&
  !/^[A-Za-z]:/.test(path) &&
  path
    .split("/")
    .every((name) => name !== "" && name !== "." && name !== ".." && name.length <= 255)

/** Percent-decoded, or as it is where that is broken. */
export const decodePercent = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The file name that an address ends in; "" for none. */
export const lastNameOf = (url: string): string =>
  decodePercent(new URL(url).pathname.split("/").at(-1) ?? "")
