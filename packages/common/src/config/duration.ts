const UNIT_SECONDS: Record<string, number> = {
  ...{ ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600 },
  ...{ d: 86_400, w: 604_800 },
}

/** Names the units in a refusal, for a field that needs one. */
export const DURATION_FORM = 'a duration such as 7d or 1h30m (units w, d, h, m, s, ms)'
export const SECONDS_OR_DURATION = `seconds, or ${DURATION_FORM}`

/** Parses `900` (seconds) or `7d`, `1h30m`, `1.5h`, `500ms`, to seconds. Undefined for other and negative ones. */
export function parseDurationSeconds(text: string): number | undefined {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text)
  if (!/^(\d+(\.\d+)?(ns|us|µs|ms|s|m|h|d|w))+$/.test(text)) return undefined
  let seconds = 0
  for (const [, amount, , unit] of text.matchAll(/(\d+(\.\d+)?)(ns|us|µs|ms|s|m|h|d|w)/g)) {
    seconds += Number(amount) * (UNIT_SECONDS[unit as string] as number)
  }
  return seconds
}
