/** Addresses of the operator's own tests, with fixed codes; nothing is ever sent to them. */
export interface TestCodes {
  /** Codes by e-mail address in lower case, or by number (digits without `+`). */
  codes: ReadonlyMap<string, string>
  validUntil: Date | undefined
}

/** Whether any code is left at this time. */
export const hasTestCodes = ({ codes, validUntil }: TestCodes, now: Date): boolean =>
  codes.size > 0 && !(validUntil && now > validUntil)

/** Returns the address's fixed code until `validUntil`. Such addresses bypass limits, but not the gap between codes. */
export function testCodeOf({ codes, validUntil }: TestCodes, address: string, now: Date): string | undefined {
  return validUntil && now > validUntil ? undefined : codes.get(address)
}

/** Id of the SMS to test numbers, as in the reference; mails have ordinary ids, which do not reveal fixed codes. */
export const TEST_MESSAGE_ID = 'test-otp'

/** Parses an RFC 3339 time; JavaScript alone would also accept `1` or `May`. */
export function parseMoment(text: string): Date {
  const moment = new Date(text)
  const isRfc3339 = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/.test(text)
  if (!isRfc3339 || Number.isNaN(moment.getTime())) throw new Error('must be a time such as 2030-01-31T00:00:00Z')
  return moment
}
