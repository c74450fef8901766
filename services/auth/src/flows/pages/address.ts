import type { Visit } from '../../http/hosted/visit.ts'

/** An address as a person types it; a phone number where phones are enabled and it is no e-mail address. */
export type TypedAddress = { email: string } | { phone: string }

export function typedAddress({ deps: { config } }: Visit, text: string | undefined): TypedAddress | undefined {
  const typed = text?.trim() ?? ''
  if (config.signup.email && /^[^\s@]+@[^\s@]+$/.test(typed)) return { email: typed }
  return config.signup.phone && /^\+?[\d\s()./-]{6,30}$/.test(typed) ? { phone: typed } : undefined
}

export const textOf = (address: TypedAddress): string => ('email' in address ? address.email : address.phone)
