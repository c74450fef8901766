/** Calling-code prefixes without `+`, and whether numbers that start with them get messages. */
export type Countries = ReadonlyMap<string, boolean>

/**
 * SMS_COUNTRIES: `+49,+1,!+1876` allows Germany and the North American plan without Jamaica. Prefixes and not country
 * names, because that is what can be told from a number: one calling code can be twenty countries.
 */
export function parseCountries(text: string): Countries {
  const items = text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean)
  return new Map(
    items.map((item) => {
      const [, not, prefix] = /^(!?)\+?([1-9][0-9]{0,14})$/.exec(item) ?? []
      if (!prefix) throw new Error('must be calling codes such as +49,+1, those with ! before them left out')
      return [prefix, not === '']
    }),
  )
}

/** The longest matching prefix decides; a number that none matches is allowed only where nothing but exclusions is listed. */
export function isCountryAllowed(countries: Countries, phone: string): boolean {
  for (let length = phone.length; length > 0; length--) {
    const allowed = countries.get(phone.slice(0, length))
    if (allowed !== undefined) return allowed
  }
  return ![...countries.values()].includes(true)
}
