import { isBlobKey } from "../../core/ports/storage.ts"

/**
 * Ends the object of every blob. Many stores keep objects as files, where `a` and `a/b` can't both
 * be; with it they are `a!` and `a/b!`. It sorts below all characters of keys, so that objects have
 * the order of their keys.
 */
const mark = "!"

export interface ObjectKeys {
  /** The object of a blob. */
  of(key: string): string
  /** What the objects of keys begin with; undefined where no key can begin so. */
  ofPrefix(prefix: string): string | undefined
  /** The key of an object; undefined for those of others. */
  keyOf(object: string): string | undefined
}

export const objectKeys = (folder: string): ObjectKeys => {
  const base = folder === "" ? "" : `${folder.replace(/\/+$/, "")}/`
  return {
    of: (key) => `${base}${key}${mark}`,
    ofPrefix: (prefix) => (/^[A-Za-z0-9._/-]{0,512}$/.test(prefix) ? base + prefix : undefined),
    keyOf: (object) => {
      if (!object.startsWith(base) || !object.endsWith(mark)) return undefined
      const key = object.slice(base.length, -mark.length)
      return isBlobKey(key) ? key : undefined
    },
  }
}
