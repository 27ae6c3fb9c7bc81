import { formatTable, quotable } from "../table.ts"
import type { Load, Sample } from "./load.ts"

/** The value below which this share lies (nearest rank). */
export const percentile = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.max(0, Math.ceil(values.length * share) - 1)] ?? 0

const sumOf = (samples: readonly Sample[], pick: (sample: Sample) => number) =>
  samples.reduce((sum, sample) => sum + pick(sample), 0)

const spread = (values: readonly number[]) => ({
  p50: Math.round(percentile(values, 0.5)),
  p95: Math.round(percentile(values, 0.95)),
})

const rounded = (n: number) => Math.round(n * 10) / 10

/** Times in ms. */
export const figuresOf = ({ samples, failures, seconds }: Load) => ({
  requests: samples.length,
  failed: [...failures.values()].reduce((sum, n) => sum + n, 0),
  seconds: rounded(seconds),
  requests_per_second: rounded(samples.length / seconds),
  prompt_tokens: sumOf(samples, ({ promptTokens }) => promptTokens),
  tokens: sumOf(samples, ({ tokens }) => tokens),
  tokens_per_second: rounded(sumOf(samples, ({ tokens }) => tokens) / seconds),
  first_token_ms: spread(samples.map(({ firstMs }) => firstMs)),
  whole_ms: spread(samples.map(({ wholeMs }) => wholeMs)),
  between_tokens_ms: spread(
    samples
      .filter(({ tokens }) => tokens > 1)
      .map(({ firstMs, wholeMs, tokens }) => (wholeMs - firstMs) / (tokens - 1)),
  ),
})

const bars = 10
const widest = 40

/** How many first tokens came in each span of time, as bars. */
export const chart = (values: readonly number[]): string => {
  if (values.length === 0) return ""
  const [least, most] = [Math.min(...values), Math.max(...values)]
  const step = Math.max(1, Math.ceil((most - least) / bars))
  const counts = Array.from({ length: Math.floor((most - least) / step) + 1 }, () => 0)
  for (const value of values) {
    const at = Math.floor((value - least) / step)
    counts[at] = (counts[at] ?? 0) + 1
  }
  const tallest = Math.max(...counts)
  const label = (at: number) => String(Math.round(least + (at + 1) * step))
  const width = Math.max(...counts.map((_, at) => label(at).length))
  return counts
    .map(
      (n, at) =>
        `  ${label(at).padStart(width)} ms  ${"█".repeat(Math.round((n / tallest) * widest))} ${n}\n`,
    )
    .join("")
}

/** Figures, the chart of first tokens, and why requests failed. */
export const reportText = (load: Load): string => {
  const { requests, failed, seconds, first_token_ms, whole_ms, between_tokens_ms, ...rates } =
    figuresOf(load)
  const times = (name: string, { p50, p95 }: { p50: number; p95: number }) => [
    name,
    `${p50} ms`,
    `${p95} ms`,
  ]
  const failures = [...load.failures].map(([reason, n]) => `${n} x ${quotable(reason)}\n`).join("")
  return [
    `${requests} requests in ${seconds} s${failed > 0 ? `, ${failed} failed` : ""}: ${rates.tokens_per_second} tokens/s, ${rates.requests_per_second} requests/s (${rates.prompt_tokens} tokens in, ${rates.tokens} out)\n`,
    requests > 0
      ? formatTable([
          ["", "median", "95 %"],
          times("first token", first_token_ms),
          times("whole answer", whole_ms),
          times("between tokens", between_tokens_ms),
        ])
      : "",
    requests > 0
      ? `First token, by time:\n${chart(load.samples.map(({ firstMs }) => firstMs))}`
      : "",
    failures,
  ]
    .filter((part) => part !== "")
    .join("\n")
}
