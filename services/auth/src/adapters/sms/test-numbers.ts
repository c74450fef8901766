/** Parses `phone:code,phone:code`; drops `+` and blanks. */
export function parseTestNumbers(text: string): ReadonlyMap<string, string> {
  const pairs = text
    .split(',')
    .map((pair) => pair.replaceAll(/[\s+]/g, ''))
    .filter(Boolean)
  return new Map(
    pairs.map((pair) => {
      const [, phone, code] = /^([1-9][0-9]{1,14})[:=]([0-9]{6,10})$/.exec(pair) ?? []
      if (!phone || !code) throw new Error('must be phone:code pairs separated by commas, codes of 6 to 10 digits')
      return [phone, code]
    }),
  )
}
