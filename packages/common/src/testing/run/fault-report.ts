import { afterAll, expect } from 'vitest'

/** Cost of a fault: requests, answers, and acknowledged data that was lost. */
export type FaultRow = Record<string, number | string>

/** Collects a row per fault of a test file and prints one table, even after a failure. */
export function openFaultReport(): (fault: string, row: FaultRow) => void {
  const rows = new Map<string, FaultRow>()
  afterAll(() => {
    console.log(`\n${expect.getState().testPath?.split('/').slice(-3).join('/')}`)
    console.table(Object.fromEntries(rows))
  })
  return (fault, row) => void rows.set(fault, row)
}
