/** JSON pointers (RFC 6901). */
export const child = (pointer: string, ...names: readonly (string | number)[]): string =>
  names.reduce<string>(
    (path, name) => `${path}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`,
    pointer,
  )

export const namesIn = (pointer: string): readonly string[] =>
  pointer
    .split("/")
    .slice(1)
    .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"))
