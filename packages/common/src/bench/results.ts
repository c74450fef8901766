import { figureText } from './figure-text.ts'
import type { Machine } from './machine.ts'

/** Both: the result is to be between them. None: shown, and never missed. */
export interface Goal {
  atLeast?: number
  atMost?: number
}

export interface BenchRow {
  /** By this name others find the row in latest.json; no dots. */
  id: string
  what: string
  against: string
  unit: string
  ours: number
  theirs: number
  compared: 'ratio' | 'difference'
  goal: Goal
}

export interface BenchGrowth {
  title: string
  /** What grows. */
  axis: string
  /** Each figure with the words and unit it is shown by. */
  lines: Record<string, string>
  points: { at: number; values: Record<string, number> }[]
}

export interface BenchFigure {
  what: string
  unit: string
  value: number
}

export interface BenchResults {
  service: string
  machine: Machine
  /** Variables that made the run another one than `pnpm bench` alone. */
  shortenedBy: Record<string, string>
  rows: BenchRow[]
  growth: Record<string, BenchGrowth>
  figures: Record<string, BenchFigure>
}

export const resultOf = ({ ours, theirs, compared }: BenchRow) => (compared === 'ratio' ? ours / theirs : ours - theirs)

export function isMet(row: BenchRow): boolean {
  const { atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY } = row.goal
  // As it is printed: 0.496 is shown as 0.50, and a goal is not missed by what nobody sees.
  const result = Number(resultText(row).replaceAll(',', ''))
  return result >= atLeast && result <= atMost
}

export const resultText = (row: BenchRow) =>
  row.compared === 'ratio' ? resultOf(row).toFixed(2) : figureText(resultOf(row))

export function goalText({ atLeast, atMost }: Goal): string {
  if (atLeast !== undefined && atMost !== undefined) return `${atLeast} to ${atMost}`
  if (atLeast !== undefined) return `≥ ${atLeast}`
  return atMost === undefined ? '–' : `≤ ${atMost}`
}
