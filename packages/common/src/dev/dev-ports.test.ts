import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { findFreePort } from './dev-ports.ts'

const RANGE = '/proc/sys/net/ipv4/ip_local_port_range'

/** The first port that the system gives to connections: RFC 6335, section 6, where it does not say. */
function firstDynamicPort(): number {
  try {
    return Number.parseInt(readFileSync(RANGE, 'utf8'), 10)
  } catch {
    return 49_152
  }
}

test('a free port is outside the ephemeral range and given once', async () => {
  const ports = await Promise.all(Array.from({ length: 200 }, () => findFreePort()))
  expect(new Set(ports).size).toBe(200)
  expect(Math.max(...ports)).toBeLessThan(firstDynamicPort())
})
