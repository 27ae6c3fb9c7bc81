/** The URL of a module beside another, as source (`.ts`, under tsx and vitest) or as built (`.js`). */
export const siblingModule = (base: string, name: string): URL =>
  new URL(`${name}${base.endsWith(".ts") ? ".ts" : ".js"}`, base)
