import { expect } from 'vitest'
import { KEPT_TRAITS, KNOWN_MEMBERS, KNOWN_TRAITS, PERSONAL_TRAITS } from '../src/core/audit/personal-data.ts'

/** Expects that erasure knows each member of the entries: it removes any other, which no reader would find any more. */
export function expectKnownMembers(payloads: readonly object[]): void {
  const members = new Set(payloads.flatMap((payload) => Object.keys(payload)))
  const given = payloads.flatMap((payload) => ('traits' in payload ? Object.entries(payload.traits as object) : []))
  const traits = new Set(given.map(([name]) => name))
  const kept = given.filter(([name]) => (KEPT_TRAITS as readonly string[]).includes(name))
  expect(kept.filter(([, value]) => JSON.stringify(value).includes('@'))).toEqual([])
  expect([...members].filter((name) => !KNOWN_MEMBERS.includes(name))).toEqual([])
  const known: readonly string[] = [...KNOWN_TRAITS, ...PERSONAL_TRAITS]
  expect([...traits].filter((name) => !known.includes(name))).toEqual([])
}
