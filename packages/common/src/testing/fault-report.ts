import { afterAll, expect } from 'vitest'

/** What a fault cost, in numbers: what was asked, how it was answered, what was lost of what had been acknowledged. */
export type FaultRow = Record<string, number | string>

/** Collects a row per fault of a test file and prints them as one table, also when a test failed. */
export function openFaultReport(): (fault: string, row: FaultRow) => void {
  const rows = new Map<string, FaultRow>()
  afterAll(() => {
    console.log(`\n${expect.getState().testPath?.split('/').slice(-3).join('/')}`)
    console.table(Object.fromEntries(rows))
  })
  return (fault, row) => void rows.set(fault, row)
}
