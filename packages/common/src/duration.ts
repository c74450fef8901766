const UNIT_SECONDS: Record<string, number> = { ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600 }

/**
 * Parses a duration in seconds: a number (`900`), or numbers with units (`1h30m`, `1.5h`, `500ms`) as in Go. `undefined` for any
 * other text and for negative durations.
 */
export function parseDurationSeconds(text: string): number | undefined {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text)
  if (!/^(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+$/.test(text)) return undefined
  let seconds = 0
  for (const [, amount, , unit] of text.matchAll(/(\d+(\.\d+)?)(ns|us|µs|ms|s|m|h)/g)) {
    seconds += Number(amount) * (UNIT_SECONDS[unit as string] as number)
  }
  return seconds
}
