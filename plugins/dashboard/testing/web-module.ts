/** Imports a module of the page in Node. The modules are plain JavaScript, so it is untyped. */
export const webModule = (name: string) => import(new URL(`../web/${name}`, import.meta.url).href)
