import htm from "htm"
import { h } from "preact"

/** Markup as a tagged template. Values become text or attributes, never markup. */
export const html = htm.bind(h)
