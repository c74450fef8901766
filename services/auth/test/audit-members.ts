import { expect } from 'vitest'
import { KNOWN_MEMBERS, KNOWN_TRAITS } from '../src/core/audit/personal-data.ts'

/** Expects that erasure knows each member of the entries: it removes any other, which no reader would find any more. */
export function expectKnownMembers(payloads: readonly object[]): void {
  const members = new Set(payloads.flatMap((payload) => Object.keys(payload)))
  const traits = new Set(
    payloads.flatMap((payload) => ('traits' in payload ? Object.keys(payload.traits as object) : [])),
  )
  expect([...members].filter((name) => !KNOWN_MEMBERS.includes(name))).toEqual([])
  expect([...traits].filter((name) => !KNOWN_TRAITS.includes(name))).toEqual([])
}
