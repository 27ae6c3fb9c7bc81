/** A module of the page, in Node; they are plain JavaScript, so it comes untyped. */
export const webModule = (name: string) => import(new URL(`../web/${name}`, import.meta.url).href)
