import { realpath } from "node:fs/promises"

/** No part of `path` below `root` is a symbolic link. `root` is a real path, so that the folder of all blobs may itself be a link. */
export const isInside = async (root: string, path: string): Promise<boolean> =>
  path.startsWith(root) && (await realpath(path)) === path
