import { html } from "../html.js"

/** `look`: main, plain, danger, link. A busy button keeps the focus and takes no second click. */
export const Button = ({
  look = "plain",
  type = "button",
  busy = false,
  onClick,
  children,
  ...rest
}) => html`
  <button type=${type} class=${`button ${look}`} aria-disabled=${busy || undefined} aria-busy=${busy || undefined} onClick=${busy ? (event) => event.preventDefault() : onClick} ...${rest}>
    ${children}
  </button>
`
