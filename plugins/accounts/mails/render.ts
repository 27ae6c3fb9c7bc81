import type { Mail } from "../../../core/index.ts"
import type { Locale } from "./locale.ts"
import type { MailContent } from "./template.ts"

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
}
export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => entities[character] ?? character)

const button =
  "display:inline-block;padding:12px 20px;border-radius:6px;background:#1f4fd8;color:#ffffff;text-decoration:none;font-weight:600"
const page =
  "margin:0;padding:24px;background:#f5f6f8;color:#1b1f27;font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif"
const card = "max-width:560px;margin:0 auto;padding:32px;background:#ffffff;border-radius:10px"

/** Turns a URL into a link; a text has at most one, at its end. */
const linked = (text: string): string =>
  escapeHtml(text).replace(/https?:\/\/\S+$/, (url) => `<a href="${url}">${url}</a>`)

const toText = ({ greeting, paragraphs, action, notes }: MailContent): string => {
  const parts = [
    greeting,
    ...paragraphs,
    ...(action ? [`${action.label}:\n${action.url}`] : []),
    ...notes,
  ]
  return `${parts.join("\n\n")}\n`
}

const toHtml = (
  { subject, greeting, paragraphs, action, notes }: MailContent,
  locale: Locale,
): string =>
  [
    `<!doctype html><html lang="${locale}"><head><meta charset="utf-8"><title>${escapeHtml(subject)}</title></head>`,
    `<body style="${escapeHtml(page)}"><div style="${card}">`,
    ...[greeting, ...paragraphs].map((text) => `<p>${linked(text)}</p>`),
    ...(action
      ? [
          `<p><a href="${escapeHtml(action.url)}" style="${button}">${escapeHtml(action.label)}</a></p>`,
        ]
      : []),
    ...(action
      ? [
          `<p style="font-size:13px;color:#5b6472;word-break:break-all">${escapeHtml(action.url)}</p>`,
        ]
      : []),
    ...notes.map((text) => `<p style="font-size:13px;color:#5b6472">${linked(text)}</p>`),
    "</div></body></html>",
  ].join("\n")

/** Renders the content as text and as HTML, without pictures, scripts, or anything to load. */
export const renderMail = (to: string, content: MailContent, locale: Locale): Mail => ({
  to,
  subject: content.subject,
  text: toText(content),
  html: toHtml(content, locale),
})
