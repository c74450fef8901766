import type { Metadata } from '../../db/tables.ts'
import type { Address } from './address.ts'
import { withoutFacts } from './proven-addresses.ts'

/** What is stored of the data of a sign-up; see new-account.ts. */
export function registeredData(id: string, { channel, value }: Address, data: Metadata): Metadata {
  return { ...withoutFacts(data), sub: id, [channel]: value, email_verified: false, phone_verified: false }
}
