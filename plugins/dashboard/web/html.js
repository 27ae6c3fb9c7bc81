import htm from "htm"
import { h } from "preact"

/** Tagged template for markup. Values become text or attributes, never markup. */
export const html = htm.bind(h)
