import { realpath } from "node:fs/promises"

/**
 * Whether no part of `path` below `root` is a symbolic link. `root` is a real path, so the
 * configured folder itself may be a link.
 */
export const isInside = async (root: string, path: string): Promise<boolean> =>
  path.startsWith(root) && (await realpath(path)) === path
