/** Numbers of the operator's own tests, with fixed codes; nothing is ever sent to them. */
export interface TestNumbers {
  /** Codes by number (digits without `+`). */
  codes: ReadonlyMap<string, string>
  validUntil: Date | undefined
}

/** Returns the number's fixed code until `validUntil`. Such numbers bypass limits, but not the gap between codes. */
export function testCodeOf({ codes, validUntil }: TestNumbers, phone: string, now: Date): string | undefined {
  return validUntil && now > validUntil ? undefined : codes.get(phone)
}

export const TEST_MESSAGE_ID = 'test-otp'

/** Parses `phone:code,phone:code`; drops `+` and blanks. */
export function parseTestNumbers(text: string): ReadonlyMap<string, string> {
  const pairs = text
    .split(',')
    .map((pair) => pair.replaceAll(/[\s+]/g, ''))
    .filter(Boolean)
  return new Map(
    pairs.map((pair) => {
      const [, phone, code] = /^([1-9][0-9]{1,14})[:=]([0-9]{4,10})$/.exec(pair) ?? []
      if (!phone || !code) throw new Error('must be phone:code pairs separated by commas, codes of 4 to 10 digits')
      return [phone, code]
    }),
  )
}

/** Parses an RFC 3339 time; JavaScript alone would also accept `1` or `May`. */
export function parseMoment(text: string): Date {
  const moment = new Date(text)
  const isRfc3339 = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/.test(text)
  if (!isRfc3339 || Number.isNaN(moment.getTime())) throw new Error('must be a time such as 2030-01-31T00:00:00Z')
  return moment
}
