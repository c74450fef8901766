/** Numbers of the operator's own tests: nothing is ever sent to them, and their code is always the same. */
export interface TestNumbers {
  /** Code by number (digits, no `+`). */
  codes: ReadonlyMap<string, string>
  validUntil: Date | undefined
}

/**
 * The fixed code of a number, or undefined for every other number and after `validUntil`. For a number that has one
 * nothing is sent and no limit is counted; the gap between two codes still holds.
 */
export function testCodeOf({ codes, validUntil }: TestNumbers, phone: string, now: Date): string | undefined {
  return validUntil && now > validUntil ? undefined : codes.get(phone)
}

/** What the caller gets as the id of a message that was never sent. */
export const TEST_MESSAGE_ID = 'test-otp'

/** `phone:code,phone:code`; `+` and spaces in numbers are dropped. */
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

/** A moment as RFC 3339 writes it; JavaScript alone would also take `1` or `May`. */
export function parseMoment(text: string): Date {
  const moment = new Date(text)
  const isRfc3339 = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/.test(text)
  if (!isRfc3339 || Number.isNaN(moment.getTime())) throw new Error('must be a time such as 2030-01-31T00:00:00Z')
  return moment
}
