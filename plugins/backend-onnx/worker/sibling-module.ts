/**
 * Returns the URL of a module beside another: the source (`.ts`, under tsx and vitest) or the
 * compiled file (`.js`).
 */
export const siblingModule = (base: string, name: string): URL =>
  new URL(`${name}${base.endsWith(".ts") ? ".ts" : ".js"}`, base)
