const UNIT_SECONDS: Record<string, number> = {
  ...{ ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 },
  // The micro sign and the Greek letter: Go reads both.
  ...{ '\u00b5s': 1e-6, '\u03bcs': 1e-6 },
}
const PART = new RegExp(`(\\d+\\.?\\d*|\\.\\d+)(${Object.keys(UNIT_SECONDS).join('|')})`, 'g')
const PARTS = new RegExp(`^(${PART.source})+$`)

/** Names the units in a refusal, for a field that needs one. */
export const DURATION_FORM = 'a duration such as 7d or 1h30m (units w, d, h, m, s, ms)'
export const SECONDS_OR_DURATION = `seconds, or ${DURATION_FORM}`

/** Parses `900` (seconds) or `7d`, `1h30m`, `1.5h`, `500ms`, to seconds. Undefined for other and negative ones. */
export const parseDurationSeconds = (text: string): number | undefined =>
  /^\d+(\.\d+)?$/.test(text) ? Number(text) : secondsOfParts(text)

/** Parses a Go duration without a sign, also in days and weeks, to seconds. Undefined for a number without a unit. */
export function secondsOfParts(text: string): number | undefined {
  if (!PARTS.test(text)) return undefined
  let seconds = 0
  for (const [, amount, unit] of text.matchAll(PART))
    seconds += Number(amount) * (UNIT_SECONDS[unit as string] as number)
  return seconds
}
